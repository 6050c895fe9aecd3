import { afterIo, type Clock } from "../../base/clock";
import type { Master, Member } from "./master";
import { inOrder } from "./order";
import { Tally, type Votes } from "./tally";

/**
 * Each step of a command may take the time of the command, divided by this number. Steps are the gate, the next gate, and the other
 * masters.
 */
const STEPS = 4;
const LEAST_PATIENCE_MS = 20;

export const NO_ANSWER = new Error("it does not answer");

/** Returns how long one step of a command waits for replies. */
export function patienceOf(timeoutMs: number): number {
  return Math.max(timeoutMs / STEPS, LEAST_PATIENCE_MS);
}

/**
 * Returns the replies to a command for many keys.
 *
 * @throws the first error if all replies are errors. Then the master is at fault, and not a key
 */
export function orFailure<Reply>(replies: readonly Reply[]): readonly Reply[] {
  const [first] = replies;
  if (first instanceof Error && replies.every((reply) => reply instanceof Error)) throw first;
  return replies;
}

/** All masters of a quorum. Decides which of them to ask, and how long to wait. */
export class Masters {
  readonly all: readonly Master[];
  readonly votes: Votes;
  readonly #clock: Clock;

  constructor(all: readonly Master[], votes: Votes, clock: Clock) {
    this.all = all;
    this.votes = votes;
    this.#clock = clock;
  }

  /** Returns the masters in the order in which they serve as the gate of the key. */
  inOrder(key: string): readonly Master[] {
    return inOrder(key, this.all);
  }

  /** Returns the candidates for the gate, responsive masters first. There is one more candidate than masters may be down. */
  gates(key: string, patienceMs: number): readonly Master[] {
    const order = this.inOrder(key);
    const isResponsive = (master: Master): boolean => master.isResponsive(patienceMs);
    const gates = [...order.filter(isResponsive), ...order.filter((master) => !isResponsive(master))];
    return gates.slice(0, this.votes.all - this.votes.majority + 1);
  }

  /** Asks each master that may be asked. `note` gets its reply, or an error if the reply is missing or does not count. */
  askAll<Reply>(
    patienceMs: number,
    ask: (member: Member, master: Master) => Promise<Reply>,
    note: (master: Master, reply: Reply | Error) => void,
  ): Promise<void>[] {
    return this.all.map(async (master) => {
      if (!master.mayBeAsked(patienceMs)) return note(master, master.silence);
      try {
        const reply = await master.ask(() => ask(master.member, master));
        note(master, (await master.fault()) ?? reply);
      } catch (error) {
        note(master, error instanceof Error ? error : new Error("it failed", { cause: error }));
      }
    });
  }

  /**
   * Asks all masters for a yes.
   *
   * @throws if no majority says yes
   */
  async poll(patienceMs: number, ask: (member: Member) => Promise<boolean>): Promise<void> {
    const tally = new Tally(this.votes);
    const asked = this.askAll(patienceMs, ask, (master, isYes) => {
      if (isYes instanceof Error) tally.silent(master, isYes);
      else if (isYes) tally.yes(master);
      else tally.no(master, undefined);
    });
    await this.awaitReplies(asked, () => tally.isYes || tally.isNo, patienceMs);
    if (!tally.isYes) throw tally.error(this.all);
  }

  /** Whether a majority is impossible and the gate has voted. The gate knows best what the key holds instead. */
  isSurelyNo(tally: Tally, key: string): boolean {
    const [gate] = this.inOrder(key);
    return tally.isNo && gate !== undefined && tally.voteOf(gate) !== undefined;
  }

  /** Resolves when the vote is decided, all replies have arrived, or the time is over. */
  awaitReplies(
    asked: Iterable<Promise<unknown>>,
    isDecided: () => boolean,
    timeoutMs: number,
  ): Promise<void> {
    const waitedFor = [...asked];
    let missing = waitedFor.length;
    if (missing === 0 || isDecided()) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.#clock.afterInBackground(timeoutMs, () => afterIo(this.#clock, end));
      for (const one of waitedFor) {
        void one.then(() => {
          missing -= 1;
          if (missing === 0 || isDecided()) end();
        });
      }
    });
  }

  /** Returns what the promise resolves to, or `undefined` if that takes too long. */
  async withTimeout<Reply>(timeoutMs: number, asked: Promise<Reply>): Promise<Reply | undefined> {
    let reply: Reply | undefined;
    await this.awaitReplies(
      [
        asked.then((value) => {
          reply = value;
        }),
      ],
      () => false,
      timeoutMs,
    );
    return reply;
  }
}
