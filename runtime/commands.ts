import type { CancelTimer, Clock } from "./clock";

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

/**
 * The commands under way. Each is bounded by a time-out of ours, whatever the client's own are. Those with the
 * usual time-out share one timer: who was sent first is the first to run out.
 */
export class Commands {
  readonly #clock: Clock;
  readonly #usual: TimeOut;

  constructor(clock: Clock, usualTimeoutMs: number) {
    this.#clock = clock;
    this.#usual = new TimeOut(clock, usualTimeoutMs);
  }

  get usualTimeoutMs(): number {
    return this.#usual.ms;
  }

  /** @param withinMs never more than the usual time-out */
  send<Reply>(command: Command<Reply>, withinMs = Infinity): void {
    const timeOut = withinMs >= this.#usual.ms ? this.#usual : new TimeOut(this.#clock, withinMs);
    timeOut.start(command);
    sent(command).then(
      (reply) => {
        if (timeOut.end(command)) command.heard(reply);
        else command.heardLate(reply);
      },
      (error: unknown) => {
        if (timeOut.end(command)) command.failed(error);
      },
    );
  }

  /** The same, as a promise. */
  ask<Reply>(send: () => Promise<Reply>, heardLate: (reply: Reply) => void = () => {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.send({ send, heard: resolve, failed: reject, heardLate });
    });
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

class TimeOut {
  readonly ms: number;
  readonly #clock: Clock;
  /** With the time at which each runs out. */
  readonly #underWay = new Map<Pick<Command<unknown>, "failed">, number>();
  #cancelTimer: CancelTimer | undefined;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.ms = ms;
  }

  start(command: Pick<Command<unknown>, "failed">): void {
    this.#underWay.set(command, this.#clock.now() + this.ms);
    this.#cancelTimer ??= this.#clock.after(this.ms, this.#expire);
  }

  /** Whether it was still under way. */
  end(command: Pick<Command<unknown>, "failed">): boolean {
    if (!this.#underWay.delete(command)) return false;
    if (this.#underWay.size === 0) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
    }
    return true;
  }

  readonly #expire = (): void => {
    this.#cancelTimer = undefined;
    const now = this.#clock.now();
    for (const [command, dueAt] of this.#underWay) {
      if (dueAt > now) {
        this.#cancelTimer ??= this.#clock.after(dueAt - now, this.#expire);
        return;
      }
      this.#underWay.delete(command);
      command.failed(new NoReplyError(`no reply from the store within ${Math.round(this.ms)} ms`));
    }
  };
}
