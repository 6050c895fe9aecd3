import { afterIo, type Clock, type Timer } from "../base/clock";
import { inRoot } from "../base/root-context";
import { partsOf, TickBatch } from "../base/tick-batch";
import { MOST_AT_ONCE } from "../stores/port";
import { repliesIn } from "../stores/replies";

/** The store did not reply in time. Whether it ran the command is unknown. */
export class NoReplyError extends Error {
  override readonly name = "NoReplyError";
}

/** A command to the store, which receives its outcome. */
export interface Command<Reply> {
  /** The time for the reply, in milliseconds. Only `InFlight` sets it. */
  timeoutMs: number;
  /** The deadline for the reply, on the monotonic clock. Only `InFlight` sets it. */
  dueAt: number;
  send(): Promise<unknown>;
  /** Returns the reply of the store. Throws if it is not a valid reply to this command. */
  read(reply: unknown): Reply;
  onReply(reply: Reply): void;
  /** Receives the error of the store, or a `NoReplyError` if nothing arrived in time. */
  onFailure(error: unknown): void;
  /** Receives a reply that arrived after `onFailure`. */
  onLateReply(reply: Reply): void;
}

type AnyCommand = Pick<Command<unknown>, "timeoutMs" | "dueAt" | "onFailure">;

/** Returns the reply of the store. Throws if it is not a valid reply. */
type Read<Reply> = (reply: unknown) => Reply;

/** `dueAt` of a command that is not in flight. */
export const NEVER_DUE = 0;

/**
 * The size of the first batch while the store is idle. It is sent before the other commands of the same turn are collected, so that the
 * store and this process work at the same time instead of taking turns. A smaller batch would cost more than that saves.
 */
const FIRST_BATCH_SIZE = 32;

/** How many ended commands the list may contain, in addition to one for each command in flight. */
const FEW = 16;

/** The commands in flight. This class sets the timeout of each, regardless of the client's own timeouts. */
export class InFlight {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #onFault: (error: unknown) => void;
  /** The commands in flight and, for a while, some that have ended. A list costs less than a set, and each lock adds two commands. */
  #begun: AnyCommand[] = [];
  #size = 0;
  #whenSettled: (() => void)[] = [];
  /** The time at which the timer fires, no later than the earliest `dueAt`. */
  #timerAt = Infinity;

  /** @param onFault called with each error that a handler of a reply throws, which is a bug in Lockweave */
  constructor(clock: Clock, usualTimeoutMs: number, onFault: (error: unknown) => void = () => {}) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#onFault = onFault;
    this.#timer = clock.timer(() => this.#onTimer());
  }

  get size(): number {
    return this.#size;
  }

  /** Resolves when no command is in flight. */
  settled(): Promise<void> {
    return this.#size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenSettled.push(resolve));
  }

  /** @param timeoutMs the time for the reply, at most the usual timeout */
  send<Reply>(command: Command<Reply>, timeoutMs = Infinity): void {
    this.begin(command, timeoutMs);
    inRoot(() => this.follow(command));
  }

  /** Sends a command, and resolves to its reply. */
  ask<Reply>(
    send: (timeoutMs: number) => Promise<unknown>,
    read: Read<Reply>,
    timeoutMs = Infinity,
  ): Promise<Reply> {
    return new Promise((resolve, reject) =>
      this.send(new PromisedCommand(send, read, resolve, reject), timeoutMs),
    );
  }

  /** Sends a command whose reply has no content, and resolves when the reply arrives. */
  async askWithoutReply(send: (timeoutMs: number) => Promise<void>): Promise<void> {
    await this.ask(send, () => true);
  }

  /**
   * Starts the timeout of the command. It reads the clock itself, because the process may have stalled since its caller read the clock.
   * This gives the store the full time to reply.
   */
  begin(command: AnyCommand, timeoutMs: number): void {
    command.timeoutMs = Math.min(timeoutMs, this.usualTimeoutMs);
    command.dueAt = Math.ceil(this.#clock.now() + command.timeoutMs);
    this.#begun.push(command);
    this.#size += 1;
    this.#setTimer(command.dueAt);
  }

  /** Sends a command whose timeout has started, and passes the outcome to it. Call this in the root context, so that handlers run there. */
  follow<Reply>(command: Command<Reply>): void {
    sendSafely(command).then(
      (reply) => this.replied(command, reply),
      (error: unknown) => this.failed(command, error),
    );
  }

  /** Handles a reply. If it cannot be read or handled, only this command fails, because others may have been sent with it. */
  replied<Reply>(command: Command<Reply>, received: unknown): void {
    let reply: Reply;
    try {
      if (received instanceof Error) throw received; // The error of one command in a batch.
      reply = command.read(received);
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

  /** Runs a handler. Reports and returns the error that it throws, which is a bug in Lockweave and must not affect other commands. */
  handle(handler: () => void): { readonly error: unknown } | undefined {
    try {
      handler();
      return undefined;
    } catch (error) {
      this.#onFault(error);
      return { error };
    }
  }

  /** Removes a command, which receives only a late reply from now on. Returns whether it was still in flight. */
  forget(command: AnyCommand): boolean {
    if (command.dueAt === NEVER_DUE) return false;
    command.dueAt = NEVER_DUE;
    this.#size -= 1;
    if (this.#begun.length > 2 * this.#size + FEW) this.#begun = this.#begun.filter(isInFlight);
    if (this.#size === 0) {
      this.#timerAt = Infinity;
      this.#timer.clear();
      if (this.#whenSettled.length > 0) for (const resolve of this.#whenSettled.splice(0)) resolve();
    }
    return true;
  }

  #setTimer(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    this.#timer.set(at);
  }

  #onTimer(): void {
    const now = this.#clock.now();
    this.#timerAt = Infinity;
    for (const { dueAt } of this.#begun) if (dueAt > now) this.#setTimer(dueAt);
    // The process may have stalled after the replies arrived. So they are read before any command fails.
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

/** Sends commands together. Resolves to a reply or an error for each, in order. */
type SendMany<Sent> = (commands: readonly Sent[], timeoutMs: number) => Promise<unknown>;

/**
 * Sends the commands of one turn of the event loop together. A single command is sent alone, in the same turn. Callers must not rely on the
 * order in which commands are sent.
 */
export class Batch<Sent extends Command<Reply>, Reply> {
  readonly #inFlight: InFlight;
  readonly #sendMany: SendMany<Sent> | undefined;
  readonly #mostAtOnce: number;
  readonly #firstBatchSize: number;
  readonly #pending = new TickBatch<Sent>((commands) => this.#send(commands));
  /** How many batches are in flight. */
  #batchesInFlight = 0;

  /** @param sendMany `undefined` if each command is sent alone */
  constructor(inFlight: InFlight, sendMany: SendMany<Sent> | undefined, mostAtOnce = MOST_AT_ONCE) {
    this.#inFlight = inFlight;
    this.#mostAtOnce = mostAtOnce;
    // A store that accepts any number splits them itself. It needs fewer commands if it gets all of them at once.
    this.#firstBatchSize = mostAtOnce === Infinity ? Infinity : FIRST_BATCH_SIZE;
    this.#sendMany = sendMany;
  }

  /** @param timeoutMs the time for the reply, at most the usual timeout */
  send(command: Sent, timeoutMs = Infinity): void {
    if (this.#sendMany === undefined) return this.#inFlight.send(command, timeoutMs);
    this.#inFlight.begin(command, timeoutMs);
    // A lone caller does not wait for a tick.
    const count = this.#pending.add(command, this.#inFlight.size <= 1);
    if (count >= (this.#batchesInFlight === 0 ? this.#firstBatchSize : this.#mostAtOnce))
      this.#pending.flush();
  }

  /** Cancels a command that was not sent yet. Returns whether it did. */
  cancel(command: Sent): boolean {
    return this.#pending.remove(command) && this.#inFlight.forget(command);
  }

  #send(commands: readonly Sent[]): void {
    for (const some of partsOf(commands, this.#mostAtOnce)) {
      const [first] = some;
      if (first !== undefined && some.length === 1) this.#inFlight.follow(first);
      else void this.#sendTogether(some);
    }
  }

  async #sendTogether(commands: readonly Sent[]): Promise<void> {
    let replies: readonly unknown[];
    this.#batchesInFlight += 1;
    try {
      const timeoutMs = commands.reduce((most, command) => Math.max(most, command.timeoutMs), 0);
      replies = repliesIn(await this.#sendMany?.(commands, timeoutMs), commands.length);
    } catch (error) {
      for (const command of commands) this.#inFlight.failed(command, error);
      return;
    } finally {
      this.#batchesInFlight -= 1;
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

/** Sends a command. A store that throws counts as one that rejects. */
function sendSafely(command: Pick<Command<unknown>, "send">): Promise<unknown> {
  try {
    return Promise.resolve(command.send());
  } catch (error) {
    return Promise.reject(error);
  }
}

class PromisedCommand<Reply> implements Command<Reply> {
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
