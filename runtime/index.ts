// For applications.
export { configure, shutdown, type Configuration, type SignalName } from "./configure";
export {
  withLock,
  obtain,
  tryObtain,
  type ConditionalOptions,
  type WithLockOptions as HandOptions,
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
  TICKET_TIME_MS as PLACE_TIME_MS,
  type ReleaseReply as DropReply,
  type ReleaseRequest as DropRequest,
  type Released as Dropped,
  type Inspection,
  type ReleaseAndEnqueueReply as NextReply,
  type NotReleased as NotDropped,
  type NotHeld,
  type NotAcquired as NotTaken,
  type EnqueueRequest as PlaceRequest,
  type Renewed,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreListener,
  type Acquired as Taken,
  type AcquireReply as TakeReply,
  type AcquireRequest as TakeRequest,
} from "./stores/port";
export type { RedisPlace } from "./configured-stores";
export type { RedisAddress } from "./stores/redis/address";
export type { LockEvent, LockEvents, Outcome } from "./lock/events";
export type { Clock, CancelTimer, Timer } from "./clock";

// For woven code.
export {
  when,
  open,
  unlocked,
  acquire,
  retryCheck,
  assertHeld,
  runReentrant,
  fail,
  release,
  refuse,
  type Site,
} from "./woven";
export { needsStore } from "./configure";
export { jsonField } from "./json-field";
export type { Lock, FailureClass } from "./lock/lock";
export type { MultiLock as Locks } from "./lock/multi-lock";
