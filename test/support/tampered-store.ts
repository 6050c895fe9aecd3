import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";

/** What happens to one command on its way: `send` carries it out. */
export type Fate<Reply> = (send: () => Promise<Reply>) => Promise<Reply>;

/** The same, whatever the command is. */
export type AnyFate = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** What happens to one hint on its way: `deliver` brings it to those who listen. */
export type HintFate = (deliver: () => void, place: string | undefined) => void;

/** The command never arrives. */
export function lostOnTheWay<Reply>(): Promise<Reply> {
  return new Promise(() => {});
}

/** The command is carried out, and its reply never arrives. */
export async function replyLost<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  await send();
  return await lostOnTheWay();
}

/** The command is carried out, and its reply comes after that. */
export function replyLate(until: Promise<void>): AnyFate {
  return async (send) => {
    const reply = await send();
    await until;
    return reply;
  };
}

/** The server cannot be reached at all. */
export async function connectionRefused<Reply>(): Promise<Reply> {
  throw new Error("connect ECONNREFUSED");
}

/** A real store on a bad network: the test says what becomes of each command, and counts them. */
export class TamperedStore implements Store {
  readonly #store: Store;
  readonly #listeners = new Set<StoreListener>();
  /** The requests that were sent for a lock, in order: by `take` or by `place`. */
  readonly asked: AcquireRequest[] = [];
  /** Those of them by `place`. */
  readonly placed: EnqueueRequest[] = [];
  /** Those that went with the end of a hold, by `next`. */
  readonly successors: EnqueueRequest[] = [];
  /** How many leases each renewal was for. */
  readonly renewed: number[] = [];
  /** How often a hold was ended: by `drop` or by `next`. */
  releases = 0;
  leaves = 0;
  looks = 0;
  closed = false;
  /** How long the reply to the last command was listened for. */
  timeoutMs = 0;

  /** Of `take` and, unless `onPlace` says otherwise, of `place`. */
  onTake: Fate<AcquireReply> = (send) => send();
  onPlace: Fate<AcquireReply> | undefined;
  onRenew: Fate<readonly RenewReply[]> = (send) => send();
  /** Of `drop` and, unless `onNext` says otherwise, of `next`. */
  onDrop: AnyFate = (send) => send();
  onNext: Fate<ReleaseAndEnqueueReply | NotReleased> | undefined;
  onLeave: Fate<void> = (send) => send();
  onLook: Fate<readonly (string | Error | undefined)[]> = (send) => send();
  onHint: HintFate = (deliver) => deliver();
  /** Of every command, around its own fate. */
  onAny: AnyFate = (send) => send();

  constructor(store: Store) {
    this.#store = store;
  }

  /** How often a command was sent, but for looks, which change nothing. */
  get commands(): number {
    return this.asked.length + this.renewals + this.releases + this.leaves;
  }

  get renewals(): number {
    return this.renewed.length;
  }

  /** How many listen for hints. */
  get listeners(): number {
    return this.#listeners.size;
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    this.asked.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onTake(() => this.#store.acquire(request, timeoutMs)));
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    this.asked.push(request);
    this.placed.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() => (this.onPlace ?? this.onTake)(() => this.#store.enqueue(request, timeoutMs)));
  }

  dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    this.leaves += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onLeave(() => this.#store.dequeue(key, place, timeoutMs)));
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    this.renewed.push(requests.length);
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onRenew(() => this.#store.renew(requests, timeoutMs)));
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    this.releases += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onDrop(() => this.#store.release(request, timeoutMs)));
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.releases += 1;
    this.successors.push(request);
    this.timeoutMs = timeoutMs;
    return this.onAny(() =>
      (this.onNext ?? this.onDrop)(() => this.#store.releaseAndEnqueue(held, request, timeoutMs)),
    );
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    this.looks += 1;
    this.timeoutMs = timeoutMs;
    return this.onAny(() => this.onLook(() => this.#store.peek(keys, timeoutMs)));
  }

  listen(listener: StoreListener): () => void {
    const deafen = this.#store.listen({
      onWakeUp: (place) => this.onHint(() => listener.onWakeUp(place), place),
      onReconnect: () => listener.onReconnect(),
      onWarning: (message) => listener.onWarning(message),
    });
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      deafen();
    };
  }

  /** A hint that the store did not send. */
  hint(place: string | undefined): void {
    for (const listener of this.#listeners) listener.onWakeUp(place);
  }

  /** The store's connection is a new one. */
  reconnect(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  /** The store has something to tell that somebody should look at. */
  warn(message: string): void {
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.#store.close();
  }
}
