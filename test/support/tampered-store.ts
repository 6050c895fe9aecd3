import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreAdmin,
  StoreListener,
  StoreQueue,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";
import { flat, type FlatStore } from "./flat-store";

/** Decides what happens to one command. `send` runs it. */
export type Fate<Reply> = (send: () => Promise<Reply>) => Promise<Reply>;

/** Decides what happens to a command of any kind. */
export type AnyFate = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** Decides what happens to one wake-up. `deliver` passes it to the listeners. */
export type WakeUpFate = (deliver: () => void, ticket: string | undefined) => void;

/** The command never arrives. */
export function lostOnTheWay<Reply>(): Promise<Reply> {
  return new Promise(() => {});
}

/** The command runs, and its reply never arrives. */
export async function replyLost<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  await send();
  return await lostOnTheWay();
}

/** The command runs, and its reply arrives after `until` has resolved. */
export function replyLate(until: Promise<void>): AnyFate {
  return async (send) => {
    const reply = await send();
    await until;
    return reply;
  };
}

/** The server is unreachable. */
export async function connectionRefused<Reply>(): Promise<Reply> {
  throw new Error("connect ECONNREFUSED");
}

/** A real store on a bad network. The test decides what happens to each command, and can count the commands. */
export class TamperedStore implements WholeStore, StoreQueue {
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin;
  readonly #store: FlatStore;
  readonly #listeners = new Set<StoreListener>();
  /** The requests of `acquire` and `enqueue`, in order. */
  readonly acquireRequests: AcquireRequest[] = [];
  /** The requests of `enqueue`. */
  readonly enqueueRequests: EnqueueRequest[] = [];
  /** The requests of the next callers in `releaseAndEnqueue`. */
  readonly nextRequests: EnqueueRequest[] = [];
  /** The number of leases in each renewal. */
  readonly renewed: number[] = [];
  /** The number of calls of `release` and `releaseAndEnqueue`. */
  releases = 0;
  dequeues = 0;
  peeks = 0;
  closed = false;
  /** The timeout of the last command. */
  timeoutMs = 0;

  /** Applies to `acquire`, and to `enqueue` unless `onEnqueue` is set. */
  onAcquire: Fate<AcquireReply> = (send) => send();
  onEnqueue: Fate<AcquireReply> | undefined;
  onRenew: Fate<readonly RenewReply[]> = (send) => send();
  /** Applies to `release`, and to `releaseAndEnqueue` unless `onReleaseAndEnqueue` is set. */
  onRelease: AnyFate = (send) => send();
  onReleaseAndEnqueue: Fate<ReleaseAndEnqueueReply | NotReleased> | undefined;
  onDequeue: Fate<void> = (send) => send();
  onPeek: Fate<readonly (string | Error | undefined)[]> = (send) => send();
  onWakeUp: WakeUpFate = (deliver) => deliver();
  /** Applies to every command, around the command's own handler. */
  onAny: AnyFate = (send) => send();

  constructor(store: Store) {
    this.#store = flat(store);
    this.admin = this.#store.admin;
  }

  /** The number of commands sent, except for `peek`, which changes nothing. */
  get commands(): number {
    return this.acquireRequests.length + this.renewals + this.releases + this.dequeues;
  }

  get renewals(): number {
    return this.renewed.length;
  }

  /** The number of listeners. */
  get listeners(): number {
    return this.#listeners.size;
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    this.acquireRequests.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onAcquire(() => this.#store.acquire(request, timeoutMs)));
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    this.acquireRequests.push(request);
    this.enqueueRequests.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() =>
      (this.onEnqueue ?? this.onAcquire)(() => this.#store.enqueue(request, timeoutMs)),
    );
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    this.dequeues += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onDequeue(() => this.#store.dequeue(key, ticket, timeoutMs)));
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    this.renewed.push(requests.length);
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onRenew(() => this.#store.renew(requests, timeoutMs)));
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    this.releases += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onRelease(() => this.#store.release(request, timeoutMs)));
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.releases += 1;
    this.nextRequests.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() =>
      (this.onReleaseAndEnqueue ?? this.onRelease)(() =>
        this.#store.releaseAndEnqueue(held, request, timeoutMs),
      ),
    );
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    this.peeks += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onPeek(() => this.#store.peek(keys, timeoutMs)));
  }

  listen(listener: StoreListener): () => void {
    const unsubscribe = this.#store.listen({
      onWakeUp: (ticket) => this.onWakeUp(() => listener.onWakeUp(ticket), ticket),
      onReconnect: () => listener.onReconnect(),
      onWarning: (message) => listener.onWarning(message),
    });
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      unsubscribe();
    };
  }

  /** Delivers a wake-up that the store did not send. */
  wakeUp(ticket: string | undefined): void {
    for (const listener of this.#listeners) listener.onWakeUp(ticket);
  }

  /** Notifies the listeners that the store has reconnected. */
  reconnect(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  /** Passes a warning to the listeners. */
  warn(message: string): void {
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.#store.close();
  }
}
