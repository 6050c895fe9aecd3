import type {
  AcquireReply,
  AcquireRequest,
  ReleaseReply,
  ReleaseRequest,
  RenewReply,
  RenewRequest,
  Store,
} from "../../runtime";
import { LockMisconfiguredError } from "../../runtime";

interface Row {
  readonly value: string;
  readonly expiresAt: number;
}

/** The least that a store must do: one table with a row for each key. It has no queue, no commands for people, and no batches. */
export class MinimalStore implements Store {
  readonly #rows = new Map<string, Row>();
  readonly #now: () => number;
  #token = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, requestId, permits = 1 } = request;
    if (permits > 1) throw new LockMisconfiguredError(`${key}: this store has no shared locks`);
    const row = this.#find(key);
    if (row !== undefined) {
      return { acquired: false, holder: row.value, freeInMs: row.expiresAt - this.#now() };
    }
    this.#write(key, requestId, request.lockTimeMs);
    return { acquired: true, ...this.#tokenFor(request) };
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return requests.map((request) => {
      const { key, requestId, lockTimeMs } = request;
      const row = this.#find(key);
      if (row?.value !== requestId) return { renewed: false, holder: row?.value };
      this.#write(key, requestId, Math.max(lockTimeMs, row.expiresAt - this.#now()));
      return { renewed: true, ...this.#tokenFor(request) };
    });
  }

  async release({ key, requestId, cooldownMs }: ReleaseRequest): Promise<ReleaseReply> {
    const holder = this.#find(key)?.value;
    const closed = `closed:${requestId}`;
    if (cooldownMs !== undefined && holder === closed) return { released: true };
    if (holder !== requestId) return { released: false, holder };
    if (cooldownMs === undefined) this.#rows.delete(key);
    else this.#write(key, closed, cooldownMs);
    return { released: true };
  }

  async peek(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return keys.map((key) => this.#find(key)?.value);
  }

  /** Returns the number of keys that are held or closed. */
  get size(): number {
    return Array.from(this.#rows.keys(), (key) => this.#find(key)).filter((row) => row !== undefined).length;
  }

  #find(key: string): Row | undefined {
    const row = this.#rows.get(key);
    return row !== undefined && this.#now() < row.expiresAt ? row : undefined;
  }

  #write(key: string, value: string, forMs: number): void {
    this.#rows.set(key, { value, expiresAt: this.#now() + forMs });
  }

  #tokenFor({ fencing }: AcquireRequest): { readonly fencingToken?: number } {
    return fencing ? { fencingToken: (this.#token += 64) } : {};
  }
}
