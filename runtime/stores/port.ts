// The interface between the runtime and a store. Four methods decide *who holds* a key: `acquire`, `renew`, `release`, and `peek`. Every
// store has them. The others are in groups, which a store may leave out. The group `queue` decides *who comes next*, `admin` is for people
// who inspect locks, and `batch` saves commands. The queue never decides who holds a key. It only reserves the key, and the waiter still
// has to acquire it with a command of its own.

/** The number of tokens in one draw. The process counts up from the first one when it hands the lock off to its own waiters. */
export const FENCING_STRIDE = 64;

/** A waiter that does not ask again within this time loses its position in the queue. */
export const TICKET_TIME_MS = 3_000;

/** The time in which a waiter must acquire a key that is reserved for it. After that, the next waiter may have its turn. */
export const CLAIM_TIME_MS = 1_500;

/** The largest number of dead waiters, and of expired holds, that one command removes. Later commands remove the rest. */
export const MOST_DEAD_AT_ONCE = 100;

/** The largest number of keys in one command. The server runs no other command meanwhile. */
export const MOST_AT_ONCE = 256;

/** A command that may acquire a key. */
export interface AcquireRequest {
  readonly key: string;
  /**
   * The value of the key from then on: 32 hex characters that no other command has ever used. So the value says which command
   * acquired the key.
   */
  readonly requestId: string;
  readonly lockTimeMs: number;
  /** Also draws a fencing token that is larger than all earlier ones: see {@link FENCING_STRIDE}. */
  readonly fencing: boolean;
  /** The number of replicas that must have the hold before the store replies that it is acquired or renewed. By default 0. */
  readonly replicas?: number;
  /**
   * The number of permits that the key has. If holders give different numbers, the smallest one applies. Without it, or with 1, the
   * caller holds the key alone. `Infinity` is for readers: any number of readers hold the key together, and nobody else with them. A shared
   * hold has no fencing token.
   */
  readonly permits?: number;
  /** The number of permits that it asks for. It may get fewer, but at least one. By default 1. A renewal keeps at most this number. */
  readonly count?: number;
}

/** A command that acquires the key or enqueues the caller. */
export interface EnqueueRequest extends AcquireRequest {
  /** Identifies the waiter: 32 hex characters, the same in each of its requests, and never a `requestId`. */
  readonly ticket: string;
}

/** This command acquired the key: the value is its `requestId` now, for its lock time. */
export interface Acquired {
  readonly acquired: true;
  /** Whether the same command may run once more: a client may send it again when its connection breaks. */
  readonly mayRunAgain?: boolean;
  /** Present if the request asked for one. */
  readonly fencingToken?: number;
  /** The number of permits that it got. By default 1. */
  readonly count?: number;
  /**
   * For a shared hold: whether anyone is waiting in the queue. Then no other caller joins the hold without asking the store. Waiting
   * readers do not count for a hold of readers.
   */
  readonly hasWaiters?: boolean;
}

/** An announcement of a process. */
export interface AnnounceRequest {
  /** The first 12 hex characters of its request IDs. */
  readonly processNumber: string;
  /** JSON. */
  readonly about: string;
  readonly forMs: number;
}

/** A hold of a key, or another value of the key. */
export interface InspectedHold {
  readonly value: string;
  /** The time until it expires without a renewal. `undefined` if the store does not know. */
  readonly leftMs: number | undefined;
  /** Its number of permits, if the key is shared with permits. */
  readonly permits?: number;
}

/** The state of a key: see {@link StoreAdmin.inspect}. */
export interface Inspection {
  /** The holds, at least the first 1,000, or another value of the key. Empty if it is free. */
  readonly holds: readonly InspectedHold[];
  /**
   * The number of waiters in its queue, at least up to 1,000. Callers of one process that may share a hold count as one. `undefined` if the
   * store does not know.
   */
  readonly waiting: number | undefined;
}

/** The key is unchanged. */
export interface NotAcquired {
  readonly acquired: false;
  /**
   * The value of the key: a `requestId`, a reservation, a mark that the key is shared (without its holders), or a value that only another
   * version understands. It is the command's own `requestId` if the command ran twice. `undefined` if the store does not know.
   */
  readonly holder: string | undefined;
  /**
   * The time until the waiter should ask again, in milliseconds: at the latest when the key becomes free without a renewal. Sooner if more dead
   * waiters are in front than one command removes. `undefined` if unknown.
   */
  readonly freeInMs: number | undefined;
  /** For `enqueue` of a shared key: whether nobody is waiting behind this waiter. */
  readonly isLast?: boolean;
}

/** The reply to a command that may acquire a key. */
export type AcquireReply = Acquired | NotAcquired;

/** A hold to renew. */
export interface RenewRequest extends AcquireRequest {
  /** Draws a new token, as `acquire` does. For a hold that the process lost track of and found again. */
  readonly fencing: boolean;
}

/** The value of the key is the `requestId`, and remains so for at least the lock time. */
export interface Renewed {
  readonly renewed: true;
  /** Present if the request asked for one. */
  readonly fencingToken?: number;
  /** See {@link Acquired.hasWaiters}. */
  readonly hasWaiters?: boolean;
}

/** The value of the key is not the `requestId`, but `holder`. `undefined` if the key is free. */
export interface NotHeld {
  readonly renewed: false;
  readonly holder: string | undefined;
}

/** The reply to one of many requests. An error concerns this request alone. */
export type RenewReply = Renewed | NotHeld | Error;

/** A hold to end or to revoke. */
export interface ReleaseRequest {
  readonly key: string;
  readonly requestId: string;
  /** The same as in the command that acquired the key. It saves the store a lookup. */
  readonly permits?: number;
  /** For `release` alone: keeps the key closed to everybody for this long from now, in whole milliseconds. */
  readonly cooldownMs?: number;
  /**
   * For `release` alone: `requestId` is the value of the key, whoever wrote it, as `forceRelease()` with `now` found it. A store whose
   * `release` compares values anyway can ignore this.
   */
  readonly isForced?: boolean;
}

/** The hold with the `requestId` has ended. */
export interface Released {
  readonly released: true;
}

/** The value of the key was not the `requestId`, but `holder`. `undefined` if the key was free. */
export interface NotReleased {
  readonly released: false;
  readonly holder: string | undefined;
  /**
   * For a forced release of a hold that transactions guard: the server process that runs them, such as `backend 4711`. The hold has not ended. See
   * {@link StoreGuard}.
   */
  readonly guardedBy?: string;
}

/** The reply to a release. */
export type ReleaseReply = Released | NotReleased;

/** The reply to `releaseAndEnqueue()`, if it released the hold. */
export interface ReleaseAndEnqueueReply extends Released {
  /** The result of the request: it acquired the key, or it waits in the queue. `undefined` if the store could not enqueue it. */
  readonly next: Acquired | "enqueued" | undefined;
}

/** Whether a store is connected. `starting`: it has not been connected yet. */
export type StoreState = "starting" | "up" | "down";

/** Receives what a store reports by itself. */
export interface StoreListener {
  /**
   * A wake-up: the waiter with this ticket should ask again, or every waiter if `ticket` is `undefined`. A wake-up may be lost, late, or
   * wrong.
   */
  onWakeUp(ticket: string | undefined): void;
  /** Reports a new connection. The store may have lost its data. */
  onReconnect(): void;
  /** Reports what a person should know. The store reports each warning once. */
  onWarning(message: string): void;
  /**
   * Returns the shortest time left of all leases and waiters, in milliseconds, or `Infinity` if there is none. The store calls it before it waits for
   * its next attempt to connect.
   */
  shortestTimeLeftMs?(): number;
}

/**
 * A store of locks. Each method is one atomic step. Even if it runs twice, late, or out of order, it changes only the hold of its own
 * `requestId`, or its own ticket.
 *
 * `timeoutMs` is the time in which the caller needs the reply. After that, the store need not send anything. A method rejects with
 * `LockMisconfiguredError` if a retry cannot help, and with any other error if it can.
 *
 * `queue`, `admin`, `batch`, and `transactions` are groups of methods. A store has a whole group or leaves it out.
 */
export interface Store {
  /** Whether it supports `replicas` in requests. Without it, no request has them. */
  readonly confirmsReplicas?: boolean;

  /** Acquires the key if it is free, or if it is shared, has room, and nobody is waiting. Readers may overtake waiting readers. */
  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply>;
  /**
   * Renews each hold for its lock time from now. A hold that has more time left keeps it. A shared hold keeps `count` of its permits, and
   * releases the others. Returns one reply for each request, in order.
   */
  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]>;
  /**
   * Ends the hold, even a revoked one. It reserves the key for the first waiter, or frees it if nobody is waiting. If others share the key,
   * it wakes the first waiter. With `cooldownMs`, for a caller that holds the key alone, the key stays closed to everybody, including the
   * queue, for that time. If it runs twice, the second reply is the same.
   */
  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply>;
  /** Returns the value of each key, in order, and `undefined` for a free key. Changes nothing. */
  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]>;

  /**
   * The queue that the waiters of all processes share. Without it, the first waiter of each process tries again with `acquire`, about ten
   * times a second. Waiters of one process still come in order.
   */
  readonly queue?: StoreQueue | undefined;
  /** The commands with which people inspect and revoke locks. Without it, `inspect()` and `forceRelease()` reject. */
  readonly admin?: StoreAdmin | undefined;
  /** Commands for many keys. Without them, the runtime sends the requests one by one. */
  readonly batch?: StoreBatch | undefined;
  /** Lets transactions guard their holds. Only a store in a database can have it. */
  readonly transactions?: StoreGuard | undefined;

  /** Returns whether the store is connected, for `health()`. Without it, `health()` only knows which commands had a reply. */
  readonly state?: (() => StoreState) | undefined;
  /**
   * Checks what the commands of one lock do not show, such as the permission for wake-ups. `ready()` calls it. Rejects with
   * `LockMisconfiguredError` if a retry cannot help, and with any other error if it can. Nobody else uses the key, which is free.
   */
  readonly ready?: ((key: string, timeoutMs: number) => Promise<void>) | undefined;
  /** Subscribes the listener. Returns a function that unsubscribes it. A store with a `queue` must have this method. */
  readonly listen?: ((listener: StoreListener) => () => void) | undefined;
  /** Closes what the store opened itself, and only that. A store that opens nothing leaves it out. */
  readonly close?: (() => Promise<void>) | undefined;
}

/** The queues of a store, one for each key. The first waiter is woken: see {@link StoreListener.onWakeUp}. */
export interface StoreQueue {
  /**
   * Acquires the key if it is reserved for the ticket. It also acquires the key if nobody is waiting in front of the ticket, and the key is
   * free, or is shared and has room. Then the ticket leaves the queue, and if there is still room, the store wakes the next waiter.
   * Otherwise the ticket joins the end of the queue, or keeps its position for another {@link TICKET_TIME_MS}. If a store knows that a
   * waiter cannot receive a wake-up, it passes the waiter over here, and wherever it reserves the key. That waiter keeps its position.
   */
  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply>;
  /**
   * Removes the waiter from the queue. If the key is reserved for it, the store reserves the key for the next waiter or frees it. If the
   * key is shared, the store wakes the first waiter.
   */
  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void>;
  /**
   * Does `release` and `enqueue` in one step. The request joins the end of the queue. If it is the first there, it acquires the key.
   * Otherwise the store reserves the key for the first waiter. If the hold has already ended, nothing changes. Both requests come from
   * callers that hold the key alone.
   */
  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased>;
}

/** Commands for people who inspect locks. */
export interface StoreAdmin {
  /**
   * Returns the state of one key, with the time left and the number of waiters. Changes nothing. The result may be a moment old.
   */
  inspect(key: string, timeoutMs: number): Promise<Inspection>;
  /**
   * Revokes the hold. It can no longer be renewed, and keeps the key until `release` with the same `requestId`, or until its time is over.
   * If it runs twice, the second reply is the same, also if `requestId` is then the value of the revoked hold.
   *
   * @returns false if there is no such hold. Then nothing has changed
   */
  revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean>;
  /** Stores the announcement of a process for a time, for people who inspect its locks. */
  announce(request: AnnounceRequest, timeoutMs: number): Promise<void>;
  /**
   * Returns the announcement of the process with this number, or `undefined` if it has none. A store may leave this out. Then errors and
   * `inspect()` do not name holders in other processes.
   */
  announced?(processNumber: string, timeoutMs: number): Promise<string | undefined>;
}

/** Commands for many keys. Each replies as the single command does, with a reply or an error for each request, in order. */
export interface StoreBatch {
  /** Whether these methods accept any number of keys, and split them into several commands. */
  readonly splitsMany?: boolean;
  /** Acquires up to {@link MOST_AT_ONCE} keys, without fencing tokens or replicas. */
  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]>;
  /** Releases up to {@link MOST_AT_ONCE} holds. */
  releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]>;
  /** Acquires or enqueues for up to {@link MOST_AT_ONCE} keys. A store without a `queue`, or with a queue for each server, leaves it out. */
  readonly enqueueMany?:
    | ((requests: readonly EnqueueRequest[], timeoutMs: number) => Promise<readonly (AcquireReply | Error)[]>)
    | undefined;
}

/** The hold that a transaction guards. */
export interface GuardRequest {
  readonly key: string;
  readonly requestId: string;
}

/**
 * Runs a statement in the caller's own transaction, and resolves to what the client library returns.
 *
 * @param values always empty, for libraries that require a list of values
 */
export type RunSql = (sql: string, values: never[]) => PromiseLike<unknown>;

/** A guard makes a transaction of the caller keep its holds until it ends. The data must be in the same database as the locks. */
export interface StoreGuard {
  /**
   * Locks the holds inside the transaction that `run` belongs to. Nobody else can acquire their keys until it ends, however late that is. A hold that
   * has expired counts as held if nobody has acquired its key since.
   *
   * @returns whether each hold is still held, in order
   * @throws {LockMisconfiguredError} if `run` does not run statements in one transaction in the database of the store
   */
  guard(holds: readonly GuardRequest[], run: RunSql): Promise<readonly boolean[]>;
}

/** A store with a queue and with commands for people. All stores of Lockweave are such stores. */
export interface WholeStore extends Store {
  readonly queue: StoreQueue;
  readonly admin: StoreAdmin;
  listen(listener: StoreListener): () => void;
  close(): Promise<void>;
}
