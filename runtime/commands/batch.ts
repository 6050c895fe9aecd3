import { MOST_AT_ONCE } from "../stores/port";
import type { Command, InFlight } from "./in-flight";

const NOW = Promise.resolve();

/** Sends commands together: one reply, or one error, for each, in their order. */
type SendMany<Sent, Reply> = (
  commands: readonly Sent[],
  withinMs: number,
) => Promise<readonly (Reply | Error)[]>;

/**
 * Sends what is asked within one turn of the event loop together. What is alone is sent by itself, in the same turn all
 * the same. Nobody may rely on the order in which anything is sent.
 */
export class Batch<Sent extends Command<Reply>, Reply> {
  readonly #inFlight: InFlight;
  readonly #sendMany: SendMany<Sent, Reply> | undefined;
  #pending: Sent[] = [];

  /** @param sendMany undefined where each is to be sent by itself */
  constructor(inFlight: InFlight, sendMany: SendMany<Sent, Reply> | undefined) {
    this.#inFlight = inFlight;
    this.#sendMany = sendMany;
  }

  /** @param mostMs never more than the usual time-out */
  send(command: Sent, now: number, mostMs = Infinity): void {
    if (this.#sendMany === undefined) return this.#inFlight.send(command, now, mostMs);
    this.#inFlight.begin(command, now, mostMs);
    if (this.#pending.push(command) > 1) return;
    // In a tick, which comes after all promise jobs that are due, callers meet whom one reply woke. A lone caller is not
    // kept waiting for it: the next promise job is late enough for what one piece of code asks for at once.
    if (this.#inFlight.size > 1) process.nextTick(this.#flush);
    else void NOW.then(this.#flush);
  }

  /** Takes back what was not sent yet. Returns whether it was. */
  cancel(command: Sent): boolean {
    const index = this.#pending.indexOf(command);
    if (index < 0) return false;
    this.#pending.splice(index, 1);
    return this.#inFlight.forget(command);
  }

  readonly #flush = (): void => {
    const pending = this.#pending;
    this.#pending = [];
    for (let from = 0; from < pending.length; from += MOST_AT_ONCE) {
      const some = pending.slice(from, from + MOST_AT_ONCE);
      const [first] = some;
      if (first !== undefined && some.length === 1) this.#inFlight.follow(first);
      else void this.#together(some);
    }
  };

  async #together(commands: readonly Sent[]): Promise<void> {
    let replies: readonly (Reply | Error)[] = [];
    try {
      const withinMs = Math.max(...commands.map((command) => command.withinMs));
      replies = (await this.#sendMany?.(commands, withinMs)) ?? [];
    } catch (error) {
      for (const command of commands) this.#inFlight.failed(command, error);
      return;
    }
    commands.forEach((command, index) => {
      const reply = replies[index] ?? new Error("the store sent fewer replies than it was asked for");
      if (reply instanceof Error) this.#inFlight.failed(command, reply);
      else this.#inFlight.replied(command, reply);
    });
  }
}
