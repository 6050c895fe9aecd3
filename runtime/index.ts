// What applications call. Woven code imports `woven-entry.ts`. At run time, both entry points of the package have the names of both files.

export { configure, shutdown, type Configuration, type SignalName } from "./configure";
export {
  withLock,
  obtain,
  tryObtain,
  type ConditionalOptions,
  type WithLockOptions,
  type Keys,
  type TryOptions,
} from "./with-lock";
export { forceRelease, type ForceOptions } from "./force-release";
export { type InspectedHolder } from "./holders";
export { inspect, type InspectedLock } from "./inspect";
export { assertWoven, currentLock, type HeldLock } from "./woven";
export { lockKey, wholeKey, type KeyValue } from "./key";
export type { LockOptions } from "./lock/settings";
export type { Duration } from "./duration";
export type { Logger } from "./logger";
export {
  LockError,
  LockWaitTimeoutError,
  LockUnreachableError,
  LockLostError,
  LockMisconfiguredError,
  LockKeyError,
  LockOptionError,
  LockClosedError,
  LockNotWovenError,
  type LockErrorCode,
  type LockErrorOptions,
} from "./errors";

// For custom stores and clocks.
export { memoryStore } from "./stores/memory";
export { quorumStore, type QuorumOptions } from "./stores/quorum/quorum-store";
export { redisStore } from "./stores/redis/redis";
export type { RedisClient, RedisSubscriber } from "./stores/redis/client";
export {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  MOST_AT_ONCE,
  TICKET_TIME_MS,
  type ReleaseReply,
  type ReleaseRequest,
  type Released,
  type Inspection,
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type NotHeld,
  type NotAcquired,
  type EnqueueRequest,
  type Renewed,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreListener,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
} from "./stores/port";
export type { RedisTarget as RedisPlace } from "./configured-stores";
export type { RedisAddress } from "./stores/redis/address";
export type { LockEvent, LockEvents, Outcome } from "./lock/events";
export type { Clock, CancelTimer, Timer } from "./clock";
