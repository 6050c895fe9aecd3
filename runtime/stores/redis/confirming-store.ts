import { systemClock, type Clock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  StoreAdmin,
  StoreBatch,
  StoreListener,
  StoreQueue,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../port";
import type { RedisClient } from "./client";
import type { Cluster } from "./cluster/by-slot";
import { Replicas } from "./replicas";
import { TOO_FEW } from "./replies";

/**
 * The share of the timeout in which replicas must confirm. Otherwise, requests of the same call that need no replicas would time out, too.
 */
const REPLICA_TIME_SHARE = 0.9;
const RELEASE_TIMEOUT_MS = 200;

/** A store in Redis, with the client that reaches the replicas. */
interface RedisStore extends WholeStore {
  readonly batch: StoreBatch;
  readonly client: RedisClient;
  readonly cluster: Cluster | undefined;
}

/**
 * Locks in Redis, some of which count only once replicas have them. An acquired hold is renewed over a connection that waits for the
 * replicas, and so is each later renewal. If the replicas do not confirm in time, the command fails as if its reply had been lost. The
 * process does not rely on the hold, but remembers it, because the command may have acquired the key.
 */
export class ConfirmingStore implements WholeStore, StoreQueue {
  readonly confirmsReplicas = true;
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin;
  readonly batch: StoreBatch;
  readonly #store: RedisStore;
  readonly #replicas: Replicas;
  readonly #clock: Clock;

  constructor(store: RedisStore, clock: Clock = systemClock) {
    this.#store = store;
    this.#clock = clock;
    this.#replicas = new Replicas(store.client, store.cluster, clock);
    this.admin = store.admin;
    this.batch = store.batch;
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    if (!wantsReplicas(request)) return this.#store.acquire(request, timeoutMs);
    return this.#takeAndConfirm(request, timeoutMs, () => this.#store.acquire(request, timeoutMs));
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    if (!wantsReplicas(request)) return this.#store.queue.enqueue(request, timeoutMs);
    return this.#takeAndConfirm(request, timeoutMs, () => this.#store.queue.enqueue(request, timeoutMs));
  }

  async #takeAndConfirm(
    request: AcquireRequest,
    timeoutMs: number,
    acquire: () => Promise<AcquireReply>,
  ): Promise<AcquireReply> {
    const startedAt = this.#clock.now();
    const reply = await acquire();
    if (!reply.acquired) return reply;
    const leftMs = timeoutMs - (this.#clock.now() - startedAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "acquire");
    if (confirmed instanceof LockMisconfiguredError) {
      // No caller retries after this error, so nobody else would release the hold.
      await this.#store.release(request, RELEASE_TIMEOUT_MS).catch(() => {});
    }
    if (confirmed instanceof Error) throw confirmed;
    return confirmed.renewed ? reply : { acquired: false, holder: confirmed.holder, freeInMs: undefined };
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    if (!requests.some(wantsReplicas)) return await this.#store.renew(requests, timeoutMs);
    const plain = requests.filter((request) => !wantsReplicas(request));
    const replies = new Map<RenewRequest, RenewReply>();
    await Promise.all([
      this.#store
        .renew(plain, timeoutMs)
        .then((plainReplies) =>
          plain.forEach((request, index) => replies.set(request, plainReplies[index] ?? TOO_FEW)),
        ),
      ...requests.filter(wantsReplicas).map(async (request) => {
        const reply = await this.#renewAndConfirm(request, timeoutMs * REPLICA_TIME_SHARE).catch(
          (error: Error) => error,
        );
        replies.set(request, reply);
      }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewAndConfirm(request: RenewRequest, timeoutMs: number): Promise<RenewReply> {
    if (!request.fencing) return await this.#replicas.confirm(request, timeoutMs, "renew");
    const startedAt = this.#clock.now();
    const [drawn = TOO_FEW] = await this.#store.renew([request], timeoutMs);
    if (drawn instanceof Error || !drawn.renewed) return drawn;
    const leftMs = timeoutMs - (this.#clock.now() - startedAt);
    const confirmed = await this.#replicas.confirm(request, leftMs, "renew");
    return confirmed instanceof Error || !confirmed.renewed ? confirmed : drawn;
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#store.release(request, timeoutMs);
  }

  /**
   * If replicas must confirm, only releases: the command that ends a hold cannot wait for them, so the next caller acquires the key by
   * itself.
   */
  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    if (!wantsReplicas(request)) return await this.#store.queue.releaseAndEnqueue(held, request, timeoutMs);
    const reply = await this.#store.release(held, timeoutMs);
    return reply.released ? { released: true, next: undefined } : reply;
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#store.peek(keys, timeoutMs);
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    return this.#store.queue.dequeue(key, ticket, timeoutMs);
  }

  listen(listener: StoreListener): () => void {
    return this.#store.listen(listener);
  }

  async close(): Promise<void> {
    this.#replicas.close();
    await this.#store.close();
  }
}

function wantsReplicas({ replicas = 0 }: AcquireRequest): boolean {
  return replicas > 0;
}
