import { afterIo, type Clock, type Timer } from "../base/clock";
import { asError, LockMisconfiguredError } from "../base/errors";
import { NoReplyError } from "../base/no-reply-error";
import { inRoot } from "../base/root-context";
import { partsOf, TickBatch } from "../base/tick-batch";
import { MOST_AT_ONCE } from "../stores/port";

/** `place` of a command that is not in flight. */
const NOWHERE = -1;

/** A command to the store, which receives its outcome. Only `InFlight` sets the fields. */
export abstract class StoreCommand<Reply> {
  /** The time for the reply, in milliseconds. */
  timeoutMs = 0;
  /** The deadline for the reply, on the monotonic clock. */
  dueAt = 0;
  /** Its index in the list of the commands in flight. */
  place = NOWHERE;

  get isInFlight(): boolean {
    return this.place !== NOWHERE;
  }

  abstract send(): Promise<Reply>;
  abstract onReply(reply: Reply): void;
  /** Receives the error of the store, or a `NoReplyError` if nothing arrived in time. */
  abstract onFailure(error: unknown): void;
  /** Receives a reply that arrived after `onFailure`. */
  abstract onLateReply(reply: Reply): void;
}

type AnyCommand = Pick<StoreCommand<unknown>, "timeoutMs" | "dueAt" | "place" | "isInFlight" | "onFailure">;

/**
 * The size of the first batch while the store is idle. It is sent before the other commands of the same turn are collected, so that the
 * store and this process work at the same time instead of taking turns. A smaller batch would cost more than that saves.
 */
const FIRST_BATCH_SIZE = 32;

/** The commands in flight. This class sets the timeout of each, regardless of the client's own timeouts. */
export class InFlight {
  readonly usualTimeoutMs: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #onFault: (error: unknown) => void;
  /** The commands in flight, in no order. A list costs less than a set, and each lock adds two commands. */
  readonly #all: AnyCommand[] = [];
  #whenSettled: (() => void)[] = [];
  /** The time at which the timer fires, no later than the earliest `dueAt`. */
  #timerAt = Infinity;
  /** On the monotonic clock: the time at which the last answered command was sent. */
  answeredAt = -Infinity;
  /** Whether the last command had no reply, or an error that a retry may fix. */
  isFailing = false;

  /** @param onFault called with each error that a handler of a reply throws, which is a bug in Lockweave */
  constructor(clock: Clock, usualTimeoutMs: number, onFault: (error: unknown) => void = () => {}) {
    this.#clock = clock;
    this.usualTimeoutMs = usualTimeoutMs;
    this.#onFault = onFault;
    this.#timer = clock.timer(() => this.#onTimer());
  }

  get size(): number {
    return this.#all.length;
  }

  /** Resolves when no command is in flight. */
  settled(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenSettled.push(resolve));
  }

  /**
   * @param timeoutMs the time for the reply, at most the usual timeout
   * @param now the time on the monotonic clock. Pass it only if no other code could run since it was read, so that the store gets the full
   *   time to reply
   */
  send<Reply>(command: StoreCommand<Reply>, timeoutMs = Infinity, now?: number): void {
    this.begin(command, timeoutMs, now);
    inRoot(() => this.follow(command));
  }

  /** Sends a command, and resolves to its reply. */
  ask<Reply>(send: (timeoutMs: number) => Promise<Reply>, timeoutMs = Infinity): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(new PromisedCommand(send, resolve, reject), timeoutMs));
  }

  /**
   * Sends one command for many requests, and resolves to a reply for each, in order. Never rejects: if the store fails, each reply is its
   * error.
   */
  async askForEach<Reply>(
    requests: readonly unknown[],
    send: (timeoutMs: number) => Promise<readonly Reply[]>,
    timeoutMs?: number,
  ): Promise<readonly (Reply | Error)[]> {
    try {
      return await this.ask(send, timeoutMs);
    } catch (error) {
      const failure = asError(error);
      return requests.map(() => failure);
    }
  }

  /** Starts the timeout of the command. */
  begin(command: AnyCommand, timeoutMs: number, now = this.#clock.now()): void {
    command.timeoutMs = Math.min(timeoutMs, this.usualTimeoutMs);
    command.dueAt = Math.ceil(now + command.timeoutMs);
    command.place = this.#all.push(command) - 1;
    this.#setTimer(command.dueAt);
  }

  /** Sends a command whose timeout has started, and passes the outcome to it. Call this in the root context, so that handlers run there. */
  follow<Reply>(command: StoreCommand<Reply>): void {
    sendSafely(command).then(
      (reply) => this.replied(command, reply),
      (error: unknown) => this.failed(command, error),
    );
  }

  /** Handles a reply. If it cannot be handled, only this command fails, because others may have been sent with it. */
  replied<Reply>(command: StoreCommand<Reply>, reply: Reply): void {
    if (!this.forget(command)) return void this.handle(() => command.onLateReply(reply));
    this.answeredAt = command.dueAt - command.timeoutMs;
    this.isFailing = false;
    try {
      command.onReply(reply);
    } catch (error) {
      this.#onFault(error);
      this.handle(() => command.onFailure(error));
    }
  }

  failed(command: AnyCommand, error: unknown): void {
    if (!this.forget(command)) return;
    if (!(error instanceof LockMisconfiguredError)) this.isFailing = true;
    this.handle(() => command.onFailure(error));
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
    if (!command.isInFlight) return false;
    const last = this.#all.pop();
    if (last !== undefined && last !== command) {
      this.#all[command.place] = last;
      last.place = command.place;
    }
    command.place = NOWHERE;
    if (this.size === 0) {
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
    for (const { dueAt } of this.#all) if (dueAt > now) this.#setTimer(dueAt);
    // The process may have stalled after the replies arrived. So they are read before any command fails.
    if (this.#all.some(({ dueAt }) => dueAt <= now)) afterIo(this.#clock, () => this.#expire(now));
  }

  #expire(now: number): void {
    const overdue = this.#all.filter(({ dueAt }) => dueAt <= now);
    for (const command of overdue) this.forget(command);
    if (overdue.length > 0) this.isFailing = true;
    for (const command of overdue) {
      const { timeoutMs } = command;
      const ms = Math.round(timeoutMs);
      const error = new NoReplyError(`no reply from the store within ${ms} ms`);
      this.handle(() => command.onFailure(error));
    }
  }
}

/** Sends commands together. Resolves to a reply or an error for each, in order. */
type SendMany<Sent, Reply> = (
  commands: readonly Sent[],
  timeoutMs: number,
) => Promise<readonly (Reply | Error)[]>;

/**
 * Sends the commands of one turn of the event loop together. A single command is sent alone, in the same turn. Callers must not rely on the
 * order in which commands are sent.
 */
export class CommandBatch<Sent extends StoreCommand<Reply>, Reply> {
  readonly #inFlight: InFlight;
  readonly #sendMany: SendMany<Sent, Reply> | undefined;
  readonly #mostAtOnce: number;
  readonly #firstBatchSize: number;
  readonly #pending = new TickBatch<Sent>((commands) => this.#send(commands));
  /** The number of batches in flight. */
  #batchesInFlight = 0;

  /** @param sendMany `undefined` if each command is sent alone */
  constructor(inFlight: InFlight, sendMany: SendMany<Sent, Reply> | undefined, mostAtOnce = MOST_AT_ONCE) {
    this.#inFlight = inFlight;
    this.#mostAtOnce = mostAtOnce;
    // A store that accepts any number splits them itself. It needs fewer commands if it gets all of them at once.
    this.#firstBatchSize = mostAtOnce === Infinity ? Infinity : FIRST_BATCH_SIZE;
    this.#sendMany = sendMany;
  }

  /** See {@link InFlight.send}. */
  send(command: Sent, timeoutMs = Infinity, now?: number): void {
    if (this.#sendMany === undefined) return this.#inFlight.send(command, timeoutMs, now);
    this.#inFlight.begin(command, timeoutMs, now);
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
    let replies: readonly (Reply | Error)[];
    this.#batchesInFlight += 1;
    try {
      const timeoutMs = commands.reduce((most, command) => Math.max(most, command.timeoutMs), 0);
      replies = (await this.#sendMany?.(commands, timeoutMs)) ?? [];
    } catch (error) {
      for (const command of commands) this.#inFlight.failed(command, error);
      return;
    } finally {
      this.#batchesInFlight -= 1;
    }
    commands.forEach((command, index) => {
      const reply = replies[index] ?? TOO_FEW;
      if (reply instanceof Error) this.#inFlight.failed(command, reply);
      else this.#inFlight.replied(command, reply);
    });
  }
}

const TOO_FEW = new Error("the store sent fewer replies than expected");

/** Sends a command. A store that throws counts as one that rejects. */
function sendSafely<Reply>(command: StoreCommand<Reply>): Promise<Reply> {
  try {
    return Promise.resolve(command.send());
  } catch (error) {
    return Promise.reject(error);
  }
}

class PromisedCommand<Reply> extends StoreCommand<Reply> {
  readonly onReply: (reply: Reply) => void;
  readonly onFailure: (error: unknown) => void;
  readonly #send: (timeoutMs: number) => Promise<Reply>;

  constructor(
    send: (timeoutMs: number) => Promise<Reply>,
    onReply: (reply: Reply) => void,
    onFailure: (error: unknown) => void,
  ) {
    super();
    this.#send = send;
    this.onReply = onReply;
    this.onFailure = onFailure;
  }

  send(): Promise<Reply> {
    return this.#send(this.timeoutMs);
  }

  onLateReply(): void {}
}
