import type {
  AcquireReply,
  AcquireRequest,
  Released,
  RenewReply,
  RenewRequest,
  Store,
} from "../../runtime/store";

/** What happens to one command on its way: `send` carries it out. */
export type Fate<Reply> = (send: () => Promise<Reply>) => Promise<Reply>;

/** The same, whatever the command is. */
export type AnyFate = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** What happens to one hint on its way: `deliver` brings it to those who listen. */
export type HintFate = (deliver: () => void, requestId: string | undefined) => void;

/** The command never arrives. */
export function lostOnTheWay<Reply>(): Promise<Reply> {
  return new Promise(() => {});
}

/** The command is carried out, and its reply never arrives. */
export async function replyLost<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  await send();
  return await lostOnTheWay();
}

/** The server cannot be reached at all. */
export async function connectionRefused<Reply>(): Promise<Reply> {
  throw new Error("connect ECONNREFUSED");
}

/** A real store on a bad network: the test says what becomes of each command, and counts them. */
export class TamperedStore implements Store {
  readonly #store: Store;
  readonly #listeners = new Set<(requestId: string | undefined) => void>();
  /** The requests that were sent for a lock, in order: by `acquire` or by `wait`. */
  readonly acquired: AcquireRequest[] = [];
  /** Those of them by `wait`. */
  readonly waits: AcquireRequest[] = [];
  /** How many leases each renewal was for. */
  readonly renewed: number[] = [];
  releases = 0;
  leaves = 0;
  closed = false;

  /** Of `acquire` and, unless `onWait` says otherwise, of `wait`. */
  onAcquire: Fate<AcquireReply> = (send) => send();
  onWait: Fate<AcquireReply> | undefined;
  onRenew: Fate<RenewReply[]> = (send) => send();
  onRelease: Fate<Released> = (send) => send();
  onLeave: Fate<void> = (send) => send();
  onHint: HintFate = (deliver) => deliver();
  /** Of every command, around its own fate. */
  onAny: AnyFate = (send) => send();

  constructor(store: Store) {
    this.#store = store;
  }

  /** How often a command was sent. */
  get commands(): number {
    return this.acquired.length + this.renewals + this.releases + this.leaves;
  }

  get renewals(): number {
    return this.renewed.length;
  }

  /** How many listen for hints. */
  get listeners(): number {
    return this.#listeners.size;
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.acquired.push(request);
    return this.onAny(() => this.onAcquire(() => this.#store.acquire(request)));
  }

  wait(request: AcquireRequest): Promise<AcquireReply> {
    this.acquired.push(request);
    this.waits.push(request);
    return this.onAny(() => (this.onWait ?? this.onAcquire)(() => this.#store.wait(request)));
  }

  leave(key: string, requestId: string): Promise<void> {
    this.leaves += 1;
    return this.onAny(() => this.onLeave(() => this.#store.leave(key, requestId)));
  }

  renew(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    this.renewed.push(holders.length);
    // What is on its way does not change with those who sent it.
    const sent = holders.map(({ key, requestId, lockTimeMs }) => ({ key, requestId, lockTimeMs }));
    return this.onAny(() => this.onRenew(() => this.#store.renew(sent)));
  }

  release(key: string, requestId: string, next?: AcquireRequest): Promise<Released> {
    this.releases += 1;
    return this.onAny(() => this.onRelease(() => this.#store.release(key, requestId, next)));
  }

  listen(onHint: (requestId: string | undefined) => void): () => void {
    const deafen = this.#store.listen((requestId) => this.onHint(() => onHint(requestId), requestId));
    this.#listeners.add(onHint);
    return () => {
      this.#listeners.delete(onHint);
      deafen();
    };
  }

  /** A hint that the store did not send. */
  hint(requestId: string | undefined): void {
    for (const onHint of this.#listeners) onHint(requestId);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.#store.close();
  }
}
