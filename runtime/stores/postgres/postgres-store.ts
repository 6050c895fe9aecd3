// Locks in PostgreSQL. Each hold is a row, and each command is one function call in one transaction. The header of each function in
// `schema/` describes its command.

import { systemClock, type Clock } from "../../base/clock";
import { errorMessage } from "../../base/errors";
import { LONGEST_ANNOUNCEMENT, UNLIMITED } from "../../base/limits";
import { runInPromiseJob } from "../../base/root-context";
import { partsOf } from "../../base/tick-batch";
import { markAsOurs } from "../checked-store";
import type { OpenStore } from "../late-store";
import type {
  AcquireReply,
  AcquireRequest,
  AnnounceRequest,
  EnqueueRequest,
  GuardRequest,
  Inspection,
  NotReleased,
  ReleaseAndEnqueueReply,
  ReleaseReply,
  ReleaseRequest,
  RenewReply,
  RenewRequest,
  RunSql,
  StoreAdmin,
  StoreBatch,
  StoreGuard,
  StoreListener,
  StoreQueue,
} from "../port";
import { permitsDiffer } from "../value";
import { assertSchema } from "./check-schema";
import type { PostgresPort } from "./client-port";
import { isUnstorable } from "./errors";
import { Gathering } from "./gathering";
import { GroupedRenewals } from "./grouped-renewals";
import { guardHolds } from "./guard";
import { storedKey } from "./keys";
import { MOST_TOGETHER, type RenewalGroups } from "./renewal-groups";
import {
  readAcquire,
  readFailure,
  readInspection,
  readRelease,
  readReleaseAndEnqueue,
  readRenewal,
  readValue,
  TOO_FEW,
  type ReplyObserver,
} from "./replies";
import { assertSchemaName, DEFAULT_SCHEMA } from "./schema-name";
import { CONNECTIONS } from "./target";
import { Statements, type Command, type Row, type WakeUp } from "./statements";
import { WakeUps, type WakeUpOwner } from "./wake-ups";

/** The most keys in one statement. Each needs an advisory lock, and the server has room for a limited number of locks. */
const MOST_KEYS = 128;

/** The same for renewals. A process may hold many locks, and renews all of them again and again. */
const MOST_RENEWALS = MOST_TOGETHER;

/**
 * Returns a store that keeps locks in PostgreSQL. It opens the connection for wake-ups when a caller first waits.
 *
 * @param options.connections how many statements the port runs at once
 * @param options.groups the groups of holds that are renewed together
 * @throws {LockOptionError} if the name of the schema is invalid
 */
export function postgresStore(
  port: PostgresPort,
  {
    schema = DEFAULT_SCHEMA,
    connections = CONNECTIONS,
    clock = systemClock,
    groups,
  }: {
    readonly schema?: string;
    readonly connections?: number;
    readonly clock?: Clock;
    readonly groups?: RenewalGroups;
  } = {},
): OpenStore {
  assertSchemaName(schema);
  return new PostgresStore(port, schema, connections, clock, groups);
}

/** The time in which the store must answer a question of a guard. */
const GUARD_TIMEOUT_MS = 5_000;

class PostgresStore implements OpenStore, StoreQueue, StoreAdmin, StoreBatch, StoreGuard, ReplyObserver {
  /** A commit waits for synchronous standbys. */
  readonly confirmsReplicas = true;
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  readonly batch: StoreBatch = this;
  readonly transactions: StoreGuard = this;
  readonly #port: PostgresPort;
  readonly #schema: string;
  readonly #statements: Statements;
  readonly #wakeUps: WakeUps;
  readonly #renewals: GroupedRenewals;
  readonly #listeners = new Set<StoreListener>();
  /** The first warning about each subject. */
  readonly #warnings = new Map<string, string>();
  /** The ID of the database, once a guard has asked for it. */
  #database: Promise<string> | undefined;
  #isClosed = false;

  /** The commands that many callers send at the same time, each for a key of its own. */
  readonly #gatherings: ReadonlyMap<Command, Gathering<Row>>;

  constructor(port: PostgresPort, schema: string, connections: number, clock: Clock, groups?: RenewalGroups) {
    markAsOurs(this);
    this.#port = port;
    this.#schema = schema;
    const onReconnect = (): void => this.#each((listener) => listener.onReconnect());
    const onWakeUps = (wakeUps: readonly WakeUp[]): void => this.#wakeUps.send(wakeUps);
    this.#statements = new Statements(port, schema, { onReconnect, onWakeUps });
    const gathering = (command: Command): [Command, Gathering<Row>] => {
      const send = (rows: readonly Row[], timeoutMs: number): Promise<readonly unknown[]> =>
        this.#send(command, rows, timeoutMs);
      return [command, new Gathering(send, connections, MOST_KEYS, clock)];
    };
    this.#gatherings = new Map([gathering("acquire_v1"), gathering("release_v1")]);
    const owner: WakeUpOwner = {
      onWakeUp: (ticket) => this.#each((listener) => listener.onWakeUp(ticket)),
      onReconnect,
      onSilent: () => this.#warn(NO_NOTIFICATIONS),
    };
    this.#wakeUps = new WakeUps(port, owner, clock);
    this.#renewals = new GroupedRenewals((...sent) => this.#many(...sent), toRow, clock, groups);
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    return readAcquire(await this.#one("acquire_v1", toRow(request), timeoutMs), request, this);
  }

  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const read = (reply: unknown, request: AcquireRequest): AcquireReply => readAcquire(reply, request, this);
    return this.#many("acquire_v1", requests, toRow, read, timeoutMs);
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#renewals.renew(requests, timeoutMs);
  }

  async release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    if (request.isForced === true) {
      return readRelease(await this.#one("free_v1", toReleaseRow(request), timeoutMs));
    }
    const reply = readRelease(await this.#one("release_v1", toReleaseRow(request), timeoutMs));
    this.#renewals.ended(request);
    return reply;
  }

  releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    const read = (reply: unknown, request: ReleaseRequest): ReleaseReply => {
      const released = readRelease(reply);
      this.#renewals.ended(request);
      return released;
    };
    return this.#many("release_v1", requests, toReleaseRow, read, timeoutMs);
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#many("peek_v1", keys, storedKey, readValue, timeoutMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    return readAcquire(await this.#one("enqueue_v1", this.#toWaiterRow(request), timeoutMs), request, this);
  }

  enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const read = (reply: unknown, request: AcquireRequest): AcquireReply => readAcquire(reply, request, this);
    return this.#many("enqueue_v1", requests, (request) => this.#toWaiterRow(request), read, timeoutMs);
  }

  async dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    await this.#statements.call("dequeue_v1", [{ key: storedKey(key), ticket }], timeoutMs);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const rows = [toReleaseRow(held), this.#toWaiterRow(request)];
    const [row] = await this.#statements.call("release_and_enqueue_v1", rows, timeoutMs);
    const reply = readReleaseAndEnqueue(row, request, this);
    this.#renewals.ended(held);
    return reply;
  }

  // ---- for people -------------------------------------------------------------------------------------

  async inspect(key: string, timeoutMs: number): Promise<Inspection> {
    return readInspection(await this.#one("inspect_v1", storedKey(key), timeoutMs));
  }

  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    return (await this.#one("revoke_v1", toReleaseRow(request), timeoutMs)) === true;
  }

  async announce({ processNumber, about, forMs }: AnnounceRequest, timeoutMs: number): Promise<void> {
    await this.#statements.call("announce_v1", [{ number: processNumber, about, for_ms: forMs }], timeoutMs);
  }

  async announced(processNumber: string, timeoutMs: number): Promise<string | undefined> {
    const request = { numbers: [processNumber], most: LONGEST_ANNOUNCEMENT };
    const [found] = await this.#statements.call("announcements_v1", [request], timeoutMs);
    return found === undefined ? undefined : (found as { readonly about: string }).about;
  }

  /** Also finds permissions that the commands of a lock alone do not need. */
  ready(_key: string, timeoutMs: number): Promise<void> {
    return assertSchema(this.#port, this.#schema, timeoutMs);
  }

  // ---- guards -----------------------------------------------------------------------------------------

  guard(holds: readonly GuardRequest[], run: RunSql): Promise<readonly boolean[]> {
    return guardHolds(this.#schema, holds, run, {
      databaseId: () => this.#databaseId(),
      areHeld: (those) => this.#areHeld(those),
    });
  }

  /** Returns the ID of the database with the schema. A restored copy has the same one. */
  #databaseId(): Promise<string> {
    if (this.#database !== undefined) return this.#database;
    const database = this.#statements.databaseId(GUARD_TIMEOUT_MS);
    this.#database = database;
    database.catch(() => (this.#database = undefined));
    return database;
  }

  /** Renews the holds for no time, which extends none. The reply tells whether each is still ours, also for one of many readers. */
  async #areHeld(holds: readonly GuardRequest[]): Promise<readonly boolean[]> {
    const toUnchangedRow = ({ key, requestId }: GuardRequest): Row => ({
      key: storedKey(key),
      request_id: requestId,
      lock_ms: 0,
      fencing: false,
    });
    const replies = await this.#many("renew_v1", holds, toUnchangedRow, readRenewal, GUARD_TIMEOUT_MS);
    return replies.map((reply) => reply instanceof Error || reply.renewed);
  }

  // ---- events -----------------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    // The listener also receives earlier warnings, but only after this call, because no caller expects them during it.
    const earlier = [...this.#warnings.values()];
    runInPromiseJob(() => {
      if (this.#listeners.has(listener)) earlier.forEach((message) => listener.onWarning(message));
    });
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#wakeUps.close();
    await this.#port.close();
  }

  onOtherLimit(key: string, limit: number, otherLimit: number): void {
    this.#warn(permitsDiffer(key, limit, otherLimit), `permits ${limit} ${otherLimit}`);
  }

  /** Reports a warning to all listeners, including later ones. Reports one warning about each subject. */
  #warn(message: string, subject = message): void {
    if (this.#isClosed || this.#warnings.has(subject)) return;
    this.#warnings.set(subject, message);
    this.#each((listener) => listener.onWarning(message));
  }

  #each(report: (listener: StoreListener) => void): void {
    for (const listener of this.#listeners) report(listener);
  }

  // ---- statements -------------------------------------------------------------------------------------

  async #one(command: Command, row: Row | string, timeoutMs: number): Promise<unknown> {
    const [reply] = await this.#call(command, [row], timeoutMs);
    if (reply === undefined) throw TOO_FEW;
    const failure = readFailure(reply); // The request may have shared its statement with others.
    if (failure !== undefined) throw failure;
    return reply;
  }

  /** Sends many requests in as few statements as possible. Resolves to a reply or an error for each request, in order. */
  async #many<Request, Reply>(
    command: Command,
    requests: readonly Request[],
    toRowOf: (request: Request) => Row | string,
    read: (reply: unknown, request: Request) => Reply,
    timeoutMs: number,
  ): Promise<readonly (Reply | Error)[]> {
    if (requests.length === 0) return [];
    const requestParts = partsOf(requests, command.startsWith("renew") ? MOST_RENEWALS : MOST_KEYS);
    const parts = requestParts.map(async (part) => {
      const replies = await this.#call(command, part.map(toRowOf), timeoutMs);
      return part.map((request, index) => {
        const reply = replies[index];
        try {
          return reply === undefined ? TOO_FEW : (readFailure(reply) ?? read(reply, request));
        } catch (error) {
          return asFailure(error); // Only this reply is invalid.
        }
      });
    });
    if (parts.length === 1) return (await parts[0]) ?? [];
    const settled = await Promise.allSettled(parts);
    return settled.flatMap((part, index): readonly (Reply | Error)[] =>
      part.status === "fulfilled"
        ? part.value
        : (requestParts[index] ?? []).map(() => asFailure(part.reason)),
    );
  }

  /** Requests for standbys do not gather, because the others must not wait for these. */
  #call(command: Command, rows: readonly (Row | string)[], timeoutMs: number): Promise<readonly unknown[]> {
    const gathering = this.#gatherings.get(command);
    if (gathering === undefined || !rows.every(canGather)) {
      return this.#send(command, rows, timeoutMs);
    }
    return gathering.call(rows, timeoutMs);
  }

  /** Sends requests in one statement. If the database cannot represent one of their keys, only that request fails. */
  async #send(
    command: Command,
    rows: readonly (Row | string)[],
    timeoutMs: number,
  ): Promise<readonly unknown[]> {
    try {
      return await this.#statements.call(command, rows, timeoutMs);
    } catch (error) {
      if (rows.length === 1 || !isUnstorable(error)) throw error;
      const halves = partsOf(rows, Math.ceil(rows.length / 2));
      const replies = halves.map((half) =>
        this.#send(command, half, timeoutMs).catch((reason: unknown) => half.map(() => asFailure(reason))),
      );
      return (await Promise.all(replies)).flat();
    }
  }

  #toWaiterRow(request: EnqueueRequest): Row {
    return { ...toRow(request), ticket: request.ticket, inbox: this.#wakeUps.address() };
  }
}

function toRow({ key, requestId, lockTimeMs, fencing, permits = 1, count, replicas }: AcquireRequest): Row {
  return {
    key: storedKey(key),
    request_id: requestId,
    lock_ms: lockTimeMs,
    fencing,
    permit_limit: permits === UNLIMITED ? 0 : permits === 1 ? undefined : permits,
    permits: count,
    replicas,
  };
}

function toReleaseRow({ key, requestId, cooldownMs }: ReleaseRequest): Row {
  return { key: storedKey(key), request_id: requestId, cooldown_ms: cooldownMs };
}

function canGather(row: Row | string): row is Row {
  return typeof row !== "string" && row["replicas"] === undefined;
}

function asFailure(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(errorMessage(reason));
}

const NO_NOTIFICATIONS =
  "no notification arrives from PostgreSQL, so waiters notice a free lock only by polling once a second. Fix: if a pooler such as PgBouncer is in the way, set `listenUrl` to the server's own address";
