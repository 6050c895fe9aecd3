// Locks in Redis. The value of a key is the requestId of its holder, or a reservation for the next waiter (see value.ts). Its time to live
// is the lock time. The header of each script describes its command.

import { errorMessage } from "../../base/errors";
import { readFrom } from "../../base/options";
import { openRedis } from "../late-store";
import type {
  AnnounceRequest,
  ReleaseReply,
  ReleaseRequest,
  Inspection,
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
import { connectionTo, type Connection, type RedisAddress } from "./address";
import { Admission } from "./admission";
import { BothKinds } from "./both-kinds";
import { assertClient, isCluster, type RedisClient } from "./client";
import type { Cluster } from "./cluster/by-slot";
import { ConfirmingStore } from "./confirming-store";
import { GivenClient } from "./given-client";
import { Holding } from "./holding";
import { loadIoredis } from "./ioredis";
import { processName } from "./keys";
import { OwnClient } from "./own-client";
import { Tickets } from "./tickets";
import { Queueing } from "./queueing";
import type { RedisClass } from "./redis-class";
import type { Send } from "./script-runner";
import { Server } from "./server";
import { Sharing } from "./sharing";

/**
 * Returns a store that keeps locks in Redis. The value of a key is the request ID of its holder.
 *
 * The store opens a second connection, for wake-ups, when a caller first waits. It never closes `client`.
 *
 * @param what the name of the client, for messages
 * @throws {LockOptionError} if `client` is not an ioredis client, or if its `keyPrefix` contains `lockweave:`
 */
export function redisStore(client: RedisClient, what = "redis"): WholeStore {
  return new ConfirmingStore(storeOver(client, what));
}

/** Returns the same store with the additional methods that a quorum needs, but without waiting for replicas. */
export function storeOver(client: RedisClient, what = "redis"): RedisStore {
  readFrom(`\`${what}\``, () => assertClient(client, what));
  if (isCluster(client))
    return new RedisStore(
      client,
      (_timeoutMs, ...command) => client.call(...command),
      () => {},
    );
  const given = new GivenClient(client, (message) => store.warn(message));
  const store: RedisStore = new RedisStore(
    client,
    (...command) => given.call(...command),
    () => given.close(),
  );
  return store;
}

/**
 * Returns a store of locks in Redis that opens its own connection, and closes it.
 *
 * @throws {LockOptionError} if the address cannot be read
 * @throws {LockMisconfiguredError} if ioredis is not installed, or is too old. In the ES module, the first lock rejects instead
 */
export function redisStoreAt(address: RedisAddress, what = "redis"): WholeStore {
  const connection = connectionTo(address, what);
  return openRedis(loadIoredis(), (Redis) => new ConfirmingStore(storeAt(Redis, connection, what)));
}

/** Returns the same store with the additional methods that a quorum needs, but without waiting for replicas. */
export function storeAt(Redis: RedisClass, connection: Connection, what = "redis"): RedisStore {
  const own = new OwnClient(Redis, connection, what, () => store.shortestLeaseMs());
  const store: RedisStore = new RedisStore(
    own.client,
    (...command) => own.call(...command),
    () => own.close(),
  );
  own.onTrouble((error) => store.warn(`there is no connection to Redis: ${errorMessage(error)}`));
  return store;
}

/** Both halves of a store in Redis: who holds a key, and who comes next. */
export class RedisStore implements WholeStore, StoreQueue, StoreAdmin, StoreBatch {
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  readonly batch: StoreBatch = this;
  /** True for a cluster. Each slot needs a command of its own there, so larger batches need fewer commands. */
  readonly splitsMany: boolean;
  /** Undefined for a cluster. Nearly every key has a slot of its own there, so no two keys can go in one script. */
  readonly enqueueMany: StoreBatch["enqueueMany"];
  readonly #server: Server;
  readonly #admission: Admission;
  readonly #holding: Holding;
  readonly #queueing: Queueing;
  readonly #both: BothKinds;
  readonly #closeClient: () => void;

  constructor(client: RedisClient, send: Send, closeClient: () => void) {
    const server = new Server(client, send);
    const tickets = new Tickets();
    const holding = new Holding(server);
    const queueing = new Queueing(server, holding, tickets);
    const both = new BothKinds(holding, queueing, new Sharing(server, tickets));
    const admission = new Admission(server);
    this.#server = server;
    this.#admission = admission;
    this.#holding = holding;
    this.#queueing = queueing;
    this.#both = both;
    this.#closeClient = closeClient;
    const isOverCluster = server.cluster !== undefined;
    this.splitsMany = isOverCluster;
    this.enqueueMany = isOverCluster
      ? undefined
      : (requests, timeoutMs) =>
          admission.hasPassed
            ? both.enqueueMany(requests, timeoutMs)
            : admission.checkMany(requests, timeoutMs, (some, leftMs) => both.enqueueMany(some, leftMs));
  }

  get client(): RedisClient {
    return this.#server.client;
  }

  get cluster(): Cluster | undefined {
    return this.#server.cluster;
  }

  // ---- who holds --------------------------------------------------------------------------------------

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    if (this.#admission.hasPassed) return this.#both.acquire(request, timeoutMs);
    return this.#admission
      .check(request.key, timeoutMs)
      .then((leftMs) => this.#both.acquire(request, leftMs));
  }

  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    if (this.#admission.hasPassed) return this.#both.acquireMany(requests, timeoutMs);
    return this.#admission.checkMany(requests, timeoutMs, (some, leftMs) =>
      this.#both.acquireMany(some, leftMs),
    );
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#both.renew(requests, timeoutMs);
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#both.release(request, timeoutMs);
  }

  releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    return this.#both.releaseMany(requests, timeoutMs);
  }

  revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    return this.#both.revoke(request, timeoutMs);
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#holding.peek(keys, timeoutMs);
  }

  inspect(key: string, timeoutMs: number): Promise<Inspection> {
    return this.#both.inspect(key, timeoutMs);
  }

  /** Makes all later tokens of the key larger than this one, and larger than the tokens that its holder counts up from it. */
  raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void> {
    return this.#holding.raiseFence(key, token, lockTimeMs, timeoutMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    if (this.#admission.hasPassed) return this.#both.enqueue(request, timeoutMs);
    return this.#admission
      .check(request.key, timeoutMs)
      .then((leftMs) => this.#both.enqueue(request, leftMs));
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    return this.#queueing.dequeue(key, ticket, timeoutMs);
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#queueing.releaseAndEnqueue(held, request, timeoutMs);
  }

  // ---- events -----------------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    return this.#server.listen(listener);
  }

  warn(message: string): void {
    this.#server.warn(message);
  }

  /** Returns the shortest time left of all leases in this process. */
  shortestLeaseMs(): number {
    return this.#server.shortestLeaseMs();
  }

  async announce({ processNumber, about, forMs }: AnnounceRequest, timeoutMs: number): Promise<void> {
    await this.#server.send(timeoutMs, "set", processName(processNumber), about, "PX", forMs);
  }

  async close(): Promise<void> {
    this.#admission.close();
    this.#server.close();
    this.#closeClient();
  }
}
