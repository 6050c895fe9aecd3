import type { Clock, Timer } from "./clock";

/** The store did not answer in time. What became of the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/** A command to the store, and who is to be told how it ends. */
export interface Command<Reply> {
  send(): Promise<Reply>;
  heard(reply: Reply): void;
  /** Of the store's error, or of a `NoReplyError` when there was none in time. */
  failed(error: unknown): void;
  /** Of a reply that came after `failed`. */
  heardLate(reply: Reply): void;
}

interface Bound {
  readonly dueAt: number;
  readonly withinMs: number;
}

/** The commands under way. Each is bounded by a time-out of ours, whatever the client's own are. */
export class Commands {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #underWay = new Map<Pick<Command<unknown>, "failed">, Bound>();
  /** For when the timer is set: for the first that runs out, or one that has ended. */
  #looksAt = Infinity;

  constructor(clock: Clock, usualTimeoutMs: number) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#timer = clock.timer(() => this.#expire());
  }

  /** @param mostMs never more than the usual time-out */
  send<Reply>(command: Command<Reply>, mostMs = Infinity): void {
    this.#begin(command, Math.min(mostMs, this.usualTimeoutMs));
    sent(command).then(
      (reply) => {
        if (this.#end(command)) command.heard(reply);
        else command.heardLate(reply);
      },
      (error: unknown) => {
        if (this.#end(command)) command.failed(error);
      },
    );
  }

  /** The same, as a promise. */
  ask<Reply>(send: () => Promise<Reply>, heardLate: (reply: Reply) => void = () => {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.send({ send, heard: resolve, failed: reject, heardLate });
    });
  }

  #begin(command: Pick<Command<unknown>, "failed">, withinMs: number): void {
    const dueAt = Math.ceil(this.#clock.now() + withinMs); // Whole milliseconds need no memory beside their field.
    this.#underWay.set(command, { dueAt, withinMs });
    this.#lookAt(dueAt);
  }

  #lookAt(at: number): void {
    if (at >= this.#looksAt) return;
    this.#looksAt = at;
    this.#timer.set(at);
  }

  /** Whether it was still under way. */
  #end(command: Pick<Command<unknown>, "failed">): boolean {
    if (!this.#underWay.delete(command)) return false;
    if (this.#underWay.size === 0) {
      this.#looksAt = Infinity;
      this.#timer.clear();
    }
    return true;
  }

  #expire(): void {
    const now = this.#clock.now();
    const overdue = [...this.#underWay].filter(([, { dueAt }]) => dueAt <= now);
    for (const [command] of overdue) this.#underWay.delete(command);
    this.#looksAt = Infinity;
    for (const { dueAt } of this.#underWay.values()) this.#lookAt(dueAt);
    for (const [command, { withinMs }] of overdue) {
      command.failed(new NoReplyError(`no reply from the store within ${Math.round(withinMs)} ms`));
    }
  }
}

/** A store that throws has rejected. */
function sent<Reply>(command: Command<Reply>): Promise<Reply> {
  try {
    return Promise.resolve(command.send());
  } catch (error) {
    return Promise.reject(error);
  }
}
