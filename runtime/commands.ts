import type { Clock, Timer } from "./clock";

/** The store did not answer in time. What became of the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/** A command to the store, which is told how it ends. */
export interface Command<Reply> {
  /** What it may take, and when that is over: the business of `Commands`. */
  withinMs: number;
  dueAt: number;
  send(): Promise<Reply>;
  heard(reply: Reply): void;
  /** Of the store's error, or of a `NoReplyError` when there was none in time. */
  failed(error: unknown): void;
  /** Of a reply that came after `failed`. */
  heardLate(reply: Reply): void;
}

type AnyCommand = Pick<Command<unknown>, "withinMs" | "dueAt" | "failed">;

/** `dueAt` of a command that is not under way. */
export const NEVER_DUE = 0;

/** How many that have ended may stand among those under way, unless more than that are under way. */
const FEW = 16;

/** The commands under way. Each is bounded by a time-out of ours, whatever the client's own are. */
export class Commands {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  /** All of them, and for a while some that have ended: a list costs less than a set, and this is done twice a lock. */
  #begun: AnyCommand[] = [];
  #underWay = 0;
  /** For when the timer is set: for the first that runs out, or one that has ended. */
  #looksAt = Infinity;

  constructor(clock: Clock, usualTimeoutMs: number) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#timer = clock.timer(() => this.#expire());
  }

  /** How many. */
  get underWay(): number {
    return this.#underWay;
  }

  /** @param mostMs never more than the usual time-out */
  send<Reply>(command: Command<Reply>, now = this.#clock.now(), mostMs = Infinity): void {
    this.begin(command, now, mostMs);
    this.follow(command);
  }

  /** The same, as a promise. */
  ask<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(new Question(send, resolve, reject)));
  }

  /** From now on its time runs. */
  begin(command: AnyCommand, now: number, mostMs: number): void {
    command.withinMs = Math.min(mostMs, this.usualTimeoutMs);
    command.dueAt = Math.ceil(now + command.withinMs);
    this.#begun.push(command);
    this.#underWay += 1;
    this.#lookAt(command.dueAt);
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
    if (command.dueAt === NEVER_DUE) return false;
    command.dueAt = NEVER_DUE;
    this.#underWay -= 1;
    if (this.#begun.length > 2 * this.#underWay + FEW) this.#begun = this.#begun.filter(isUnderWay);
    if (this.#underWay === 0) {
      this.#looksAt = Infinity;
      this.#timer.clear();
    }
    return true;
  }

  #expire(): void {
    const now = this.#clock.now();
    const overdue = this.#begun.filter((command) => isUnderWay(command) && command.dueAt <= now);
    for (const command of overdue) this.#end(command);
    this.#looksAt = Infinity;
    for (const command of this.#begun) if (isUnderWay(command)) this.#lookAt(command.dueAt);
    for (const command of overdue) {
      const { withinMs } = command;
      command.failed(new NoReplyError(`no reply from the store within ${Math.round(withinMs)} ms`));
    }
  }
}

function isUnderWay({ dueAt }: AnyCommand): boolean {
  return dueAt !== NEVER_DUE;
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
  dueAt = NEVER_DUE;
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
