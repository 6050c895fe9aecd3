import type { Clock, Timer } from "./clock";
import { Roster } from "./roster";

/** The store did not answer in time. What became of the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/** A command to the store, which is told how it ends. */
export interface Command<Reply> {
  /** What it may take: the business of `Commands`. */
  withinMs: number;
  send(): Promise<Reply>;
  heard(reply: Reply): void;
  /** Of the store's error, or of a `NoReplyError` when there was none in time. */
  failed(error: unknown): void;
  /** Of a reply that came after `failed`. */
  heardLate(reply: Reply): void;
}

type AnyCommand = Pick<Command<unknown>, "withinMs" | "failed">;

/** The commands under way. Each is bounded by a time-out of ours, whatever the client's own are. */
export class Commands {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  /** With the time at which each runs out. */
  readonly #underWay = new Roster<AnyCommand, number>();
  /** For when the timer is set: for the first that runs out, or one that has ended. */
  #looksAt = Infinity;

  constructor(clock: Clock, usualTimeoutMs: number) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#timer = clock.timer(() => this.#expire());
  }

  /** @param mostMs never more than the usual time-out */
  send<Reply>(command: Command<Reply>, mostMs = Infinity): void {
    this.begin(command, mostMs);
    this.follow(command);
  }

  /** The same, as a promise. */
  ask<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(new Question(send, resolve, reject)));
  }

  /** From now on its time runs. */
  begin(command: AnyCommand, mostMs: number): void {
    command.withinMs = Math.min(mostMs, this.usualTimeoutMs);
    const dueAt = Math.ceil(this.#clock.now() + command.withinMs);
    this.#underWay.set(command, dueAt);
    this.#lookAt(dueAt);
  }

  /** Sends what has begun, and tells it how it ends. */
  follow<Reply>(command: Command<Reply>): void {
    sent(command).then(
      (reply) => this.heard(command, reply),
      (error: unknown) => this.failed(command, error),
    );
  }

  heard<Reply>(command: Command<Reply>, reply: Reply): void {
    if (this.#end(command)) command.heard(reply);
    else command.heardLate(reply);
  }

  failed(command: AnyCommand, error: unknown): void {
    if (this.#end(command)) command.failed(error);
  }

  #lookAt(at: number): void {
    if (at >= this.#looksAt) return;
    this.#looksAt = at;
    this.#timer.set(at);
  }

  /** Whether it was still under way. */
  #end(command: AnyCommand): boolean {
    if (!this.#underWay.delete(command)) return false;
    if (this.#underWay.size === 0) {
      this.#looksAt = Infinity;
      this.#timer.clear();
    }
    return true;
  }

  #expire(): void {
    const now = this.#clock.now();
    const overdue = [...this.#underWay.entries()].filter(([, dueAt]) => dueAt <= now);
    for (const [command] of overdue) this.#underWay.delete(command);
    this.#looksAt = Infinity;
    for (const dueAt of this.#underWay.values()) this.#lookAt(dueAt);
    for (const [command] of overdue) {
      const { withinMs } = command;
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

class Question<Reply> implements Command<Reply> {
  withinMs = 0;
  readonly send: () => Promise<Reply>;
  readonly heard: (reply: Reply) => void;
  readonly failed: (error: unknown) => void;

  constructor(send: () => Promise<Reply>, heard: (reply: Reply) => void, failed: (error: unknown) => void) {
    this.send = send;
    this.heard = heard;
    this.failed = failed;
  }

  heardLate(): void {}
}
