// Locks in Redis. A key holds the requestId of its holder, or a reservation for who is next (see value.ts), and its time
// to live is the lock time. What each command does stands at the head of its script.

import { errorMessage } from "../../errors";
import { readFrom } from "../../options";
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
  Store,
  StoreListener,
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
 * Locks in Redis: the key holds the `requestId`, its time to live is the lock time.
 *
 * Many keys go in one script; to a cluster, in one for each slot, and those for a node in one write. A second connection,
 * for hints, is opened when somebody first waits.
 * `client` stays the caller's: `close()` does not touch it.
 *
 * @throws {LockOptionError} when it is no client of ioredis, or when its keyPrefix contains `lockweave:`
 */
export function redisStore(client: RedisClient, what = "redis"): Store {
  return new ConfirmingStore(storeOver(client, what));
}

/** The same, with what a quorum of several needs besides. */
export function storeOver(client: RedisClient, what = "redis"): RedisStore {
  readFrom(`\`${what}\``, () => assertClient(client, what));
  if (isCluster(client))
    return new RedisStore(
      client,
      (_withinMs, ...command) => client.call(...command),
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
 * The same over a connection of the store's own.
 *
 * @throws {LockOptionError} when the address cannot be read
 * @throws {LockMisconfiguredError} when ioredis is not installed, or too old. In the ES module, the first lock rejects
 */
export function redisStoreAt(address: RedisAddress, what = "redis"): Store {
  const connection = connectionTo(address, what);
  return openRedis(loadIoredis(), (Redis) => new ConfirmingStore(storeAt(Redis, connection, what)));
}

/** The same, with what a quorum of several needs besides. */
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

/** Who holds, and who comes next, as one. */
export class RedisStore implements Store {
  /** In a cluster, where one command is for each slot: the more at once, the fewer commands. */
  readonly splitsMany: boolean;
  // Properties: whoever sends batches asks whether they are there, and calls them by themselves.
  readonly acquireMany: NonNullable<Store["acquireMany"]>;
  readonly releaseMany: NonNullable<Store["releaseMany"]>;
  /** Not in a cluster, where nearly each key has a slot of its own, and no two go in one script. */
  readonly enqueueMany: Store["enqueueMany"];
  readonly #server: Server;
  readonly #admission: Admission;
  readonly #holding: Holding;
  readonly #queueing: Queueing;
  readonly #both: BothKinds;
  readonly #closeClient: () => void;

  constructor(client: RedisClient, send: Send, closeClient: () => void) {
    const server = new Server(client, send);
    const places = new Tickets();
    const holding = new Holding(server);
    const queueing = new Queueing(server, holding, places);
    const both = new BothKinds(holding, queueing, new Sharing(server, places));
    const admission = new Admission(server);
    this.#server = server;
    this.#admission = admission;
    this.#holding = holding;
    this.#queueing = queueing;
    this.#both = both;
    this.#closeClient = closeClient;
    const isOverCluster = server.cluster !== undefined;
    this.splitsMany = isOverCluster;
    this.acquireMany = (requests, timeoutMs) =>
      admission.isOver
        ? both.acquireMany(requests, timeoutMs)
        : admission.checkMany(requests, timeoutMs, (some, leftMs) => both.acquireMany(some, leftMs));
    this.releaseMany = (requests, timeoutMs) => both.releaseMany(requests, timeoutMs);
    this.enqueueMany = isOverCluster
      ? undefined
      : (requests, timeoutMs) =>
          admission.isOver
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
    if (this.#admission.isOver) return this.#both.acquire(request, timeoutMs);
    return this.#admission
      .check(request.key, timeoutMs)
      .then((leftMs) => this.#both.acquire(request, leftMs));
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#both.renew(requests, timeoutMs);
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#both.release(request, timeoutMs);
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

  /** From now on all tokens that are drawn for the key are larger than this one, and those that it stands for. */
  raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void> {
    return this.#holding.raiseFence(key, token, lockTimeMs, timeoutMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    if (this.#admission.isOver) return this.#both.enqueue(request, timeoutMs);
    return this.#admission
      .check(request.key, timeoutMs)
      .then((leftMs) => this.#both.enqueue(request, leftMs));
  }

  dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    return this.#queueing.dequeue(key, place, timeoutMs);
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#queueing.releaseAndEnqueue(held, request, timeoutMs);
  }

  // ---- what is told -----------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    return this.#server.listen(listener);
  }

  warn(message: string): void {
    this.#server.warn(message);
  }

  /** The shortest time left of a lease that is held here. */
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
