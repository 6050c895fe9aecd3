// Locks in Redis. The value of a key is the requestId of its holder, or a reservation for the next waiter (see value.ts). Its time to live
// is the lock time. The header of each script describes its command.

import { readFrom } from "../../base/options";
import { markAsOurs } from "../checked-store";
import { openRedis } from "../late-store";
import type { LibraryLog } from "../load-library";
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
  StoreState,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { isShared } from "../value";
import { connectionTo, type Connection, type RedisAddress } from "./address";
import { Admission } from "./admission";
import { BatchExecutor } from "./batch-executor";
import type { GivenClient, UnsupportedClient } from "./client";
import type { ClientLibrary, ClientPort } from "./client-port";
import { ExclusiveCommands } from "./exclusive-commands";
import { eachAlone, Executor, type Operation } from "./executor";
import { processName } from "./keys";
import { loadLibrary } from "./load-library";
import { QueueCommands } from "./queue-commands";
import { assertClient, openOwnBeside, portOf } from "./recognize-client";
import { ReplicatedHolds, wantsReplicas, withoutReplicas } from "./replicated-holds";
import { TOO_FEW } from "./replies";
import { Server } from "./server";
import { SharedCommands } from "./shared-commands";
import { Tickets, type AddressedRequest } from "./tickets";

/**
 * Returns a store that keeps locks in Redis. The value of a key is the request ID of its holder.
 *
 * The store opens a second connection, for wake-ups, when a caller first waits. It never closes `client`.
 *
 * @param what the name of the client, for messages
 * @throws {LockOptionError} if `client` is not a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or if its `keyPrefix` contains `lockweave:`
 */
export function redisStore(client: GivenClient | UnsupportedClient, what = "redis"): WholeStore {
  return storeOver(client as GivenClient, what);
}

/** Returns the same store with the additional methods that a quorum needs. */
export function storeOver(client: GivenClient, what = "redis"): RedisStore {
  readFrom(`\`${what}\``, () => assertClient(client, what));
  const own = openOwnBeside(client, () => server.shortestTimeLeftMs());
  const server: Server = new Server(own?.port ?? portOf(client), own);
  return new RedisStore(server);
}

/**
 * Returns a store of locks in Redis that opens its own connection, and closes it.
 *
 * @throws {LockOptionError} if the address cannot be read
 * @throws {LockMisconfiguredError} if no client library is installed, or if it is too old. In the ES module, the first lock rejects instead
 */
export function redisStoreAt(address: RedisAddress, what = "redis", log?: LibraryLog): WholeStore {
  const connection = connectionTo(address, what);
  return openRedis(loadLibrary(connection.client, log), (library) => storeAt(library, connection, what));
}

/** Returns the same store with the additional methods that a quorum needs. */
export function storeAt(library: ClientLibrary, connection: Connection, what = "redis"): RedisStore {
  const own = library.connect(connection, what, () => server.shortestTimeLeftMs());
  const server: Server = new Server(own.port, own);
  return new RedisStore(server);
}

/**
 * A store in Redis: its holds and its queues. Each method sends its request as an operation for the kind of the
 * lock, which is held alone or shared.
 */
export class RedisStore implements WholeStore, StoreQueue, StoreAdmin, StoreBatch {
  readonly confirmsReplicas = true;
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  readonly batch: StoreBatch = this;
  /** True for a cluster. Each slot needs a command of its own there, so larger batches need fewer commands. */
  readonly splitsMany: boolean;
  /** Undefined for a cluster. Nearly every key has a slot of its own there, so no two keys can go in one script. */
  readonly enqueueMany: StoreBatch["enqueueMany"];
  readonly #server: Server;
  readonly #admission: Admission;
  readonly #tickets: Tickets;
  readonly #executor: Executor;
  readonly #batches: BatchExecutor;
  readonly #exclusive: ExclusiveCommands;
  readonly #queued: QueueCommands;
  readonly #shared: SharedCommands;
  readonly #replicated: ReplicatedHolds;

  constructor(server: Server) {
    markAsOurs(this);
    this.#server = server;
    this.#admission = new Admission(server);
    this.#tickets = new Tickets(server);
    this.#executor = new Executor(server);
    this.#batches = new BatchExecutor(server, this.#executor);
    this.#exclusive = new ExclusiveCommands(server, this.#executor);
    this.#queued = new QueueCommands(server, this.#executor, this.#tickets, this.#exclusive);
    this.#shared = new SharedCommands(server, this.#tickets);
    this.#replicated = new ReplicatedHolds(this, server);
    const isOverCluster = server.cluster !== undefined;
    this.splitsMany = isOverCluster;
    this.enqueueMany = isOverCluster
      ? undefined
      : (requests, timeoutMs) => this.#enqueueMany(requests, timeoutMs);
  }

  get client(): ClientPort {
    return this.#server.client;
  }

  // ---- who holds --------------------------------------------------------------------------------------

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    if (wantsReplicas(request)) {
      const sent = this.acquire(withoutReplicas(request), timeoutMs);
      return this.#replicated.confirm(request, sent, timeoutMs);
    }
    if (!this.#admission.hasPassed) return this.#acquireFirst(request, timeoutMs);
    return this.#executor.one(this.#acquisition(request), request, timeoutMs);
  }

  #acquireFirst(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const acquire = (leftMs: number): Promise<AcquireReply> => this.acquire(request, leftMs);
    if (request.fencing || isToShare(request) || this.#server.cluster !== undefined)
      return this.#admission.check(request.key, timeoutMs).then(acquire);
    const { checkAndAcquire } = this.#exclusive;
    const both = (leftMs: number): Promise<AcquireReply | undefined> =>
      this.#executor.one(checkAndAcquire, request, leftMs);
    const abandon = ({ acquired }: AcquireReply): void => {
      if (acquired) this.release(request, timeoutMs).catch(() => {}); // It expires then.
    };
    return this.#admission.acquire(request.key, timeoutMs, both, acquire, abandon);
  }

  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    if (!this.#admission.hasPassed)
      return this.#admission.checkMany(requests, timeoutMs, (some, leftMs) => this.acquireMany(some, leftMs));
    return this.#batches
      .many(requests, (request) => this.#acquisition(request), timeoutMs)
      .then(unlessAllFailed);
  }

  #acquisition(request: AcquireRequest): Operation<AcquireRequest, AcquireReply> {
    return isToShare(request) ? this.#shared.acquire : this.#exclusive.acquire(request);
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    if (requests.some(wantsReplicas)) return await this.#replicated.renew(requests, timeoutMs);
    const exclusive = (request: RenewRequest): Operation<RenewRequest, RenewReply> =>
      this.#exclusive.renew(request);
    const shared = this.#shared.renew;
    if (requests.length > 1) return await this.#manyOfAnyKind(requests, exclusive, shared, timeoutMs);
    return await eachAlone(requests, (request) =>
      this.#oneOfAnyKind(request, exclusive(request), shared, timeoutMs),
    );
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#oneOfAnyKind(request, this.#exclusive.release(request), this.#shared.release, timeoutMs);
  }

  /**
   * Sends a request that ends or renews a hold. Repeats it if its key turns out to be shared, because the request may not say so.
   */
  async #oneOfAnyKind<Request extends ReleaseRequest, Reply extends ReleaseReply | RenewReply>(
    request: Request,
    exclusive: Operation<Request, Reply>,
    shared: Operation<Request, Reply>,
    timeoutMs: number,
  ): Promise<Reply> {
    if (!isToShare(request)) {
      const reply = await this.#executor.one(exclusive, request, timeoutMs);
      if (!isFoundShared(reply)) return reply;
    }
    return await this.#executor.one(shared, request, timeoutMs);
  }

  async releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    const { release } = this.#shared;
    return unlessAllFailed(
      await this.#manyOfAnyKind(requests, (request) => this.#exclusive.release(request), release, timeoutMs),
    );
  }

  /** Sends many requests that end or renew holds. Repeats those whose keys turn out to be shared. */
  async #manyOfAnyKind<Request extends ReleaseRequest, Reply extends ReleaseReply | RenewReply>(
    requests: readonly Request[],
    exclusive: (request: Request) => Operation<Request, Reply>,
    shared: Operation<Request, Reply>,
    timeoutMs: number,
  ): Promise<readonly (Reply | Error)[]> {
    const replies = await this.#batches.many(
      requests,
      (request) => (isToShare(request) ? shared : exclusive(request)),
      timeoutMs,
    );
    const isToRepeat = requests.map((request, index) => !isToShare(request) && isFoundShared(replies[index]));
    if (!isToRepeat.includes(true)) return replies;
    const repeated = await this.#batches.many(
      requests.filter((_, index) => isToRepeat[index]),
      () => shared,
      timeoutMs,
    );
    const rest = repeated.values();
    return replies.map((reply, index) => (isToRepeat[index] ? (rest.next().value ?? TOO_FEW) : reply));
  }

  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    const reply = await this.#executor.one(this.#exclusive.revoke, request, timeoutMs);
    return reply === "shared" ? await this.#executor.one(this.#shared.revoke, request, timeoutMs) : reply;
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    const requests = keys.map((key) => ({ key }));
    return this.#batches.many(requests, () => this.#exclusive.peek, timeoutMs);
  }

  async inspect(key: string, timeoutMs: number): Promise<Inspection> {
    const inspection = await this.#executor.one(this.#exclusive.inspect, { key }, timeoutMs);
    const [first] = inspection.holds;
    if (first === undefined || !isShared(first.value)) return inspection;
    return { ...inspection, holds: await this.#executor.one(this.#shared.inspect, { key }, timeoutMs) };
  }

  /** Makes all later tokens of the key larger than this one, and larger than the tokens that its holder counts up from it. */
  raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void> {
    return this.#executor.one(this.#exclusive.raiseFence, { key, token, lockTimeMs }, timeoutMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    if (wantsReplicas(request)) {
      const sent = this.enqueue(withoutReplicas(request), timeoutMs);
      return this.#replicated.confirm(request, sent, timeoutMs);
    }
    if (!this.#admission.hasPassed)
      return this.#admission.check(request.key, timeoutMs).then((leftMs) => this.enqueue(request, leftMs));
    const addressed = this.#tickets.addressed(request);
    return this.#executor.one(this.#enqueuing(request), addressed, timeoutMs);
  }

  #enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    if (!this.#admission.hasPassed)
      return this.#admission.checkMany(requests, timeoutMs, (some, leftMs) =>
        this.#enqueueMany(some, leftMs),
      );
    const addressed = requests.map((request) => this.#tickets.addressed(request));
    return this.#batches
      .many(addressed, (request) => this.#enqueuing(request), timeoutMs)
      .then(unlessAllFailed);
  }

  #enqueuing(request: EnqueueRequest): Operation<AddressedRequest, AcquireReply> {
    return isToShare(request) ? this.#shared.enqueue : this.#queued.enqueue;
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    const request = { key, ticket, ...this.#tickets.forget(key, ticket) };
    return this.#executor.one(this.#queued.dequeue, request, timeoutMs);
  }

  /**
   * Releases a hold, and acquires or enqueues for the next caller. If replicas must confirm, it only releases, because this command cannot
   * wait for them. The next caller then acquires the key by itself.
   */
  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    if (wantsReplicas(request)) {
      const reply = await this.release(held, timeoutMs);
      return reply.released ? { released: true, next: undefined } : reply;
    }
    const next = this.#tickets.addressed(request);
    return await this.#executor.one(this.#queued.releaseAndEnqueue, { key: held.key, held, next }, timeoutMs);
  }

  // ---- events -----------------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    return this.#server.listen(listener);
  }

  state(): StoreState {
    return this.#server.state;
  }

  ready(): Promise<void> {
    return this.#server.assertWakeUps();
  }

  async announce({ processNumber, about, forMs }: AnnounceRequest, timeoutMs: number): Promise<void> {
    const command = { name: "set", keys: [processName(processNumber)], args: [about, "PX", forMs] };
    await this.#server.ask(command, timeoutMs);
  }

  async announced(processNumber: string, timeoutMs: number): Promise<string | undefined> {
    const command = { name: "get", keys: [processName(processNumber)], args: [] };
    const about = await this.#server.ask(command, timeoutMs);
    return typeof about === "string" ? about : undefined;
  }

  async close(): Promise<void> {
    this.#admission.close();
    this.#replicated.close();
    this.#server.close();
  }
}

function isToShare({ permits = 1 }: { readonly permits?: number }): boolean {
  return permits > 1;
}

/** Whether the key of a hold turned out to be shared. */
function isFoundShared(reply: ReleaseReply | RenewReply | undefined): boolean {
  return reply !== undefined && "holder" in reply && reply.holder !== undefined && isShared(reply.holder);
}

/** Throws the error if all requests share it: their only command failed. So a quorum learns that the server did not reply. */
function unlessAllFailed<Reply>(replies: readonly (Reply | Error)[]): readonly (Reply | Error)[] {
  const [first] = replies;
  if (first instanceof Error && replies.length > 1 && replies.every((reply) => reply === first)) throw first;
  return replies;
}
