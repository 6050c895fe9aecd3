import { afterIo, type Clock, type Timer } from "../clock";
import { inRoot, runInNextTick, runInPromiseJob } from "../root-context";
import { MOST_AT_ONCE } from "../stores/port";
import { repliesIn } from "../stores/replies";

/** The store did not answer in time. What became of the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/** A command to the store, which is told how it ends. */
export interface Command<Reply> {
  /** For how long a reply is waited for, in milliseconds, and on the clock when that is over: the business of `InFlight`. */
  timeoutMs: number;
  dueAt: number;
  send(): Promise<unknown>;
  /** Returns what the store replied. Throws if that is no reply to this command. */
  read(reply: unknown): Reply;
  onReply(reply: Reply): void;
  /** Of the store's error, or of a `NoReplyError` when there was neither in time. */
  onFailure(error: unknown): void;
  /** Of a reply that came after `onFailure`. */
  onLateReply(reply: Reply): void;
}

type AnyCommand = Pick<Command<unknown>, "timeoutMs" | "dueAt" | "onFailure">;

/** Returns what the store replied. Throws if that is no reply. */
type Read<Reply> = (reply: unknown) => Reply;

/** `dueAt` of a command that is not in flight. */
export const NEVER_DUE = 0;

/**
 * So many go at once where the store has nothing to do for us, and the others after them: so the store and this process work at
 * the same time, and do not wait for each other by turns. With fewer the commands themselves cost more than that saves.
 */
const ENOUGH_TO_BEGIN = 32;

/** How many that have ended may stand among those in flight, unless more than that are in flight. */
const FEW = 16;

/** The commands in flight. Each is bounded by a time-out of ours, whatever the client's own are. */
export class InFlight {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #onFault: (error: unknown) => void;
  /** All of them, and for a while some that have ended: a list costs less than a set, and this is done twice a lock. */
  #begun: AnyCommand[] = [];
  #size = 0;
  #whenSettled: (() => void)[] = [];
  /** For when the timer is set: for the first that runs out, or one that has ended. */
  #looksAt = Infinity;

  /** @param onFault told what was thrown while a reply was handled, which is a fault of ours */
  constructor(clock: Clock, usualTimeoutMs: number, onFault: (error: unknown) => void = () => {}) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#onFault = onFault;
    this.#timer = clock.timer(() => this.#ring());
  }

  get size(): number {
    return this.#size;
  }

  /** Resolves when nothing is in flight. */
  settled(): Promise<void> {
    return this.#size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenSettled.push(resolve));
  }

  /** @param mostMs never more than the usual time-out */
  send<Reply>(command: Command<Reply>, mostMs = Infinity): void {
    this.begin(command, mostMs);
    inRoot(() => this.follow(command));
  }

  /** The same, as a promise. */
  ask<Reply>(
    send: (timeoutMs: number) => Promise<unknown>,
    read: Read<Reply>,
    mostMs = Infinity,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(new Question(send, read, resolve, reject), mostMs));
  }

  /** The same of a command whose reply tells nothing. */
  async tell(send: (timeoutMs: number) => Promise<void>): Promise<void> {
    await this.ask(send, () => true);
  }

  /**
   * Starts the time of the command. It reads the clock itself: the process may have stalled since its caller did, and the store
   * has the whole time to reply.
   */
  begin(command: AnyCommand, mostMs: number): void {
    command.timeoutMs = Math.min(mostMs, this.usualTimeoutMs);
    command.dueAt = Math.ceil(this.#clock.now() + command.timeoutMs);
    this.#begun.push(command);
    this.#size += 1;
    this.#lookAt(command.dueAt);
  }

  /** Sends what has begun, and reports its end to it. To be called in the root context, so that the report runs there. */
  follow<Reply>(command: Command<Reply>): void {
    sent(command).then(
      (reply) => this.replied(command, reply),
      (error: unknown) => this.failed(command, error),
    );
  }

  /** A reply that nobody can read, or handle, fails this command alone: others may have been sent with it. */
  replied<Reply>(command: Command<Reply>, told: unknown): void {
    let reply: Reply;
    try {
      if (told instanceof Error) throw told; // Of one among many.
      reply = command.read(told);
    } catch (error) {
      return this.failed(command, error);
    }
    if (!this.forget(command)) return void this.handle(() => command.onLateReply(reply));
    const fault = this.handle(() => command.onReply(reply));
    if (fault !== undefined) this.handle(() => command.onFailure(fault.error));
  }

  failed(command: AnyCommand, error: unknown): void {
    if (this.forget(command)) this.handle(() => command.onFailure(error));
  }

  /** Handles a reply, or a failure. Reports and returns what that throws: it is a fault of ours, and stops nobody else. */
  handle(handler: () => void): { readonly error: unknown } | undefined {
    try {
      handler();
      return undefined;
    } catch (error) {
      this.#onFault(error);
      return { error };
    }
  }

  /** It is told nothing more, but of a late reply. Returns whether it was still in flight. */
  forget(command: AnyCommand): boolean {
    if (command.dueAt === NEVER_DUE) return false;
    command.dueAt = NEVER_DUE;
    this.#size -= 1;
    if (this.#begun.length > 2 * this.#size + FEW) this.#begun = this.#begun.filter(isInFlight);
    if (this.#size === 0) {
      this.#looksAt = Infinity;
      this.#timer.clear();
      if (this.#whenSettled.length > 0) for (const tell of this.#whenSettled.splice(0)) tell();
    }
    return true;
  }

  #lookAt(at: number): void {
    if (at >= this.#looksAt) return;
    this.#looksAt = at;
    this.#timer.set(at);
  }

  #ring(): void {
    const now = this.#clock.now();
    this.#looksAt = Infinity;
    for (const { dueAt } of this.#begun) if (dueAt > now) this.#lookAt(dueAt);
    // The process may have stalled, and the replies may have arrived long ago.
    if (this.#begun.some((command) => isOverdue(command, now))) afterIo(this.#clock, () => this.#expire(now));
  }

  #expire(now: number): void {
    const overdue = this.#begun.filter((command) => isOverdue(command, now));
    for (const command of overdue) this.forget(command);
    for (const command of overdue) {
      const { timeoutMs } = command;
      const ms = Math.round(timeoutMs);
      const error = new NoReplyError(`no reply from the store within ${ms} ms`);
      this.handle(() => command.onFailure(error));
    }
  }
}

/** Sends commands together: one reply, or one error, for each, in their order. */
type SendMany<Sent> = (commands: readonly Sent[], timeoutMs: number) => Promise<unknown>;

/**
 * Sends what is asked within one turn of the event loop together. What is alone is sent by itself, in the same turn all
 * the same. Nobody may rely on the order in which anything is sent.
 */
export class Batch<Sent extends Command<Reply>, Reply> {
  readonly #inFlight: InFlight;
  readonly #sendMany: SendMany<Sent> | undefined;
  readonly #mostAtOnce: number;
  readonly #enoughToBegin: number;
  #pending: Sent[] = [];
  /** How often some were sent together of which nothing was heard yet. */
  #underWay = 0;

  /** @param sendMany undefined where each is to be sent by itself */
  constructor(inFlight: InFlight, sendMany: SendMany<Sent> | undefined, mostAtOnce = MOST_AT_ONCE) {
    this.#inFlight = inFlight;
    this.#mostAtOnce = mostAtOnce;
    // A store that takes any number makes several commands of them itself: the fewer, the more it has of them.
    this.#enoughToBegin = mostAtOnce === Infinity ? Infinity : ENOUGH_TO_BEGIN;
    this.#sendMany = sendMany;
  }

  /** @param mostMs never more than the usual time-out */
  send(command: Sent, mostMs = Infinity): void {
    if (this.#sendMany === undefined) return this.#inFlight.send(command, mostMs);
    this.#inFlight.begin(command, mostMs);
    const count = this.#pending.push(command);
    if (count >= (this.#underWay === 0 ? this.#enoughToBegin : this.#mostAtOnce)) return inRoot(this.#flush);
    if (count > 1) return;
    // In a tick, which comes after all promise jobs that are due, callers meet whom one reply woke. A lone caller is not
    // kept waiting for it: the next promise job is late enough for what one piece of code asks for at once.
    if (this.#inFlight.size > 1) runInNextTick(this.#flush);
    else runInPromiseJob(this.#flush);
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
    for (let from = 0; from < pending.length; from += this.#mostAtOnce) {
      const some = pending.slice(from, from + this.#mostAtOnce);
      const [first] = some;
      if (first !== undefined && some.length === 1) this.#inFlight.follow(first);
      else void this.#together(some);
    }
  };

  async #together(commands: readonly Sent[]): Promise<void> {
    let replies: readonly unknown[];
    this.#underWay += 1;
    try {
      const timeoutMs = commands.reduce((most, command) => Math.max(most, command.timeoutMs), 0);
      replies = repliesIn(await this.#sendMany?.(commands, timeoutMs), commands.length);
    } catch (error) {
      for (const command of commands) this.#inFlight.failed(command, error);
      return;
    } finally {
      this.#underWay -= 1;
    }
    commands.forEach((command, index) => {
      this.#inFlight.replied(command, replies[index]);
    });
  }
}

function isInFlight({ dueAt }: AnyCommand): boolean {
  return dueAt !== NEVER_DUE;
}

function isOverdue(command: AnyCommand, now: number): boolean {
  return isInFlight(command) && command.dueAt <= now;
}

/** A store that throws has rejected. */
function sent(command: Pick<Command<unknown>, "send">): Promise<unknown> {
  try {
    return Promise.resolve(command.send());
  } catch (error) {
    return Promise.reject(error);
  }
}

class Question<Reply> implements Command<Reply> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly read: Read<Reply>;
  readonly onReply: (reply: Reply) => void;
  readonly onFailure: (error: unknown) => void;
  readonly #send: (timeoutMs: number) => Promise<unknown>;

  constructor(
    send: (timeoutMs: number) => Promise<unknown>,
    read: Read<Reply>,
    onReply: (reply: Reply) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.#send = send;
    this.read = read;
    this.onReply = onReply;
    this.onFailure = onFailure;
  }

  send(): Promise<unknown> {
    return this.#send(this.timeoutMs);
  }

  onLateReply(): void {}
}
