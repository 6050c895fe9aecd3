import { afterIo, type Clock } from "../../clock";
import type { Master, Member } from "./master";
import { inOrder } from "./order";
import { Tally, type Votes } from "./tally";

/** So much of the time of a command each of its steps may take: past the gate, the next gate, and to the others. */
const STEPS = 4;
const LEAST_PATIENCE_MS = 20;

export const NO_ANSWER = new Error("it does not answer");

/** How long to listen in one step of a command. */
export function patienceOf(timeoutMs: number): number {
  return Math.max(timeoutMs / STEPS, LEAST_PATIENCE_MS);
}

/** All masters: whom to ask, and for how long to listen. */
export class Masters {
  readonly all: readonly Master[];
  readonly votes: Votes;
  readonly #clock: Clock;

  constructor(all: readonly Master[], votes: Votes, clock: Clock) {
    this.all = all;
    this.votes = votes;
    this.#clock = clock;
  }

  /** Whose turn it is to be the gate of the key. */
  inOrder(key: string): readonly Master[] {
    return inOrder(key, this.all);
  }

  /** As many as there can be dead ones, and one more: first those that answered lately. */
  gates(key: string, patienceMs: number): readonly Master[] {
    const order = this.inOrder(key);
    const isWell = (master: Master): boolean => master.answers(patienceMs);
    const gates = [...order.filter(isWell), ...order.filter((master) => !isWell(master))];
    return gates.slice(0, this.votes.all - this.votes.majority + 1);
  }

  /** Asks all who may be asked, and notes what counts of what they say. */
  askAll<Reply>(
    patienceMs: number,
    ask: (member: Member, master: Master) => Promise<Reply>,
    note: (master: Master, reply: Reply | Error) => void,
  ): Promise<void>[] {
    return this.all.map(async (master) => {
      if (!master.mayBeAsked(patienceMs)) return note(master, NO_ANSWER);
      try {
        const reply = await master.ask(() => ask(master.member, master));
        note(master, (await master.fault()) ?? reply);
      } catch (error) {
        note(master, error instanceof Error ? error : new Error("it failed", { cause: error }));
      }
    });
  }

  /** @throws where no majority says yes */
  async poll(patienceMs: number, ask: (member: Member) => Promise<boolean>): Promise<void> {
    const tally = new Tally(this.votes);
    const asked = this.askAll(patienceMs, ask, (master, isYes) => {
      if (isYes instanceof Error) tally.silent(master, isYes);
      else if (isYes) tally.yes(master);
      else tally.no(master, undefined);
    });
    await this.heard(asked, () => tally.isYes || tally.isNo, patienceMs);
    if (!tally.isYes) throw tally.error();
  }

  /** Where it is, the gate knows best what the key holds instead. */
  isSurelyNo(tally: Tally, key: string): boolean {
    const [gate] = this.inOrder(key);
    return tally.isNo && gate !== undefined && tally.of(gate) !== undefined;
  }

  /** Resolves when it is decided, or all are heard, or the time is over. */
  heard(asked: Iterable<Promise<unknown>>, isDecided: () => boolean, timeoutMs: number): Promise<void> {
    const waitedFor = [...asked];
    let unheard = waitedFor.length;
    if (unheard === 0 || isDecided()) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.#clock.afterInBackground(timeoutMs, () => afterIo(this.#clock, end));
      for (const one of waitedFor) {
        void one.then(() => {
          unheard -= 1;
          if (unheard === 0 || isDecided()) end();
        });
      }
    });
  }

  /** What it resolves to, or nothing where that is not in time. */
  async within<Reply>(timeoutMs: number, asked: Promise<Reply>): Promise<Reply | undefined> {
    let reply: Reply | undefined;
    await this.heard(
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
