import type { Command, Commands } from "./commands";
import { MOST_AT_ONCE } from "./store";

const NOW = Promise.resolve();

/** Sends commands together: one reply, or one error, for each, in their order. */
type SendMany<Sent, Reply> = (commands: readonly Sent[]) => Promise<readonly (Reply | Error)[]>;

/**
 * Sends what is asked within one turn of the event loop together, in the order in which it was asked. What is alone
 * is sent by itself, in the same turn all the same.
 */
export class Batch<Sent extends Command<Reply>, Reply> {
  readonly #commands: Commands;
  readonly #sendMany: SendMany<Sent, Reply> | undefined;
  #pending: Sent[] = [];

  /** @param sendMany undefined where each is to be sent by itself */
  constructor(commands: Commands, sendMany: SendMany<Sent, Reply> | undefined) {
    this.#commands = commands;
    this.#sendMany = sendMany;
  }

  /** @param mostMs never more than the usual time-out */
  send(command: Sent, now: number, mostMs = Infinity): void {
    if (this.#sendMany === undefined) return this.#commands.send(command, now, mostMs);
    this.#commands.begin(command, now, mostMs);
    if (this.#pending.push(command) > 1) return;
    // In a tick, which comes after all promise jobs that are due, callers meet whom one reply woke. A lone caller is not
    // kept waiting for it: the next promise job is late enough for what one piece of code asks for at once.
    if (this.#commands.underWay > 1) process.nextTick(this.#flush);
    else void NOW.then(this.#flush);
  }

  readonly #flush = (): void => {
    const pending = this.#pending;
    this.#pending = [];
    for (let from = 0; from < pending.length; from += MOST_AT_ONCE) {
      const some = pending.slice(from, from + MOST_AT_ONCE);
      const [first] = some;
      if (first !== undefined && some.length === 1) this.#commands.follow(first);
      else void this.#together(some);
    }
  };

  async #together(commands: readonly Sent[]): Promise<void> {
    let replies: readonly (Reply | Error)[] = [];
    try {
      replies = (await this.#sendMany?.(commands)) ?? [];
    } catch (error) {
      for (const command of commands) this.#commands.failed(command, error);
      return;
    }
    commands.forEach((command, index) => {
      const reply = replies[index] ?? new Error("the store sent fewer replies than it was asked for");
      if (reply instanceof Error) this.#commands.failed(command, reply);
      else this.#commands.heard(command, reply);
    });
  }
}
