// The functions and types for applications. Woven code imports `woven/entry.ts`. At run time, both entry points of the package have the names of both
// files. The API reference lists the names in this order.

export { configure, shutdown } from "./config/configure";
export type { Configuration, SignalName } from "./config/configuration";
export { ready, type ReadyOptions } from "./diagnostics/ready";
export { health, type Health, type StoreHealth } from "./diagnostics/health";
export {
  withLock,
  obtain,
  tryObtain,
  type WithLockOptions,
  type ConditionalOptions,
  type SkipOptions,
  type TryOptions,
  type Keys,
} from "./with-lock";
export type { LockOptions } from "./lock/settings";
export type { FailureHandler } from "./lock/on-failure";
export { currentLock, assertWoven } from "./woven/woven";
export type { HeldLock } from "./lock/held-lock";
export { lockKey, wholeKey, type KeyValue } from "./base/key";
export type { Duration } from "./base/duration";
export { inspect, type InspectedLock } from "./admin/inspect";
export type { InspectedHolder } from "./diagnostics/holders";
export type { AnnouncedHolder } from "./lock/locker";
export { forceRelease, type ForceOptions } from "./admin/force-release";
export type { FieldOrder, LogFields, Logger } from "./base/logger";
export type { GiveUpOutcome, LockEvents, LockEvent, Outcome } from "./lock/events";
export {
  LockError,
  LockWaitTimeoutError,
  LockUnreachableError,
  LockLostError,
  LockMisconfiguredError,
  LockKeyError,
  LockOptionError,
  LockClosedError,
  LockNotHeldError,
  LockNotWovenError,
  type LockErrorCode,
  type LockErrorHolder,
  type LockErrorOptions,
} from "./base/errors";

export { memoryStore } from "./stores/memory";
export { redisStore } from "./stores/redis/redis";
export { quorumStore, type QuorumOptions } from "./stores/quorum/quorum-store";
export type { RedisTarget, StoreTarget } from "./config/configured-stores";
export type { PostgresTarget, PostgresOptions, PostgresSettings } from "./stores/postgres/target";
export type { GivenPostgres, PgPool, PostgresJs } from "./stores/postgres/client";
export type { RedisAddress } from "./stores/redis/address";

// For stores, clients, and clocks of the application's own.
export type {
  BunRedisClient,
  NodeRedisClient,
  RedisClient,
  RedisSubscriber,
  ValkeyGlide,
  ValkeyGlideClient,
} from "./stores/redis/client";
export type { Clock, Timer, CancelTimer } from "./base/clock";
export {
  type Store,
  type WholeStore,
  type StoreQueue,
  type StoreAdmin,
  type StoreBatch,
  type StoreListener,
  type StoreState,
  type AcquireRequest,
  type EnqueueRequest,
  type AcquireReply,
  type Acquired,
  type NotAcquired,
  type RenewRequest,
  type RenewReply,
  type Renewed,
  type NotHeld,
  type ReleaseRequest,
  type ReleaseReply,
  type Released,
  type NotReleased,
  type ReleaseAndEnqueueReply,
  type Inspection,
  type InspectedHold,
  type AnnounceRequest,
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  MOST_AT_ONCE,
  TICKET_TIME_MS,
} from "./stores/port";

// A program that imports `lockweave` then contains what its woven files import, so a compiler can reuse the program's structure.
// oxlint-disable-next-line unicorn/require-module-specifiers -- Only the file matters, and not its names.
export type {} from "./woven/entry";
