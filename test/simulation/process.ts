import { createLocker } from "../../runtime/config/create-locker";
import type { Clock } from "../../runtime/base/clock";
import { Lock } from "../../runtime/lock/lock";
import { MultiLock } from "../../runtime/lock/multi-lock";
import { termsOf, type Locker, type Terms } from "../../runtime/lock/locker";
import { settle, type LockOptions } from "../../runtime/lock/settings";
import type { Loss } from "../../runtime/queue/loss";
import type { Store } from "../../runtime/stores/port";
import { belongsToNobody } from "./contexts";
import type { ProcessClock } from "./process-clock";
import { requestIdOf } from "./truth";

/** One process with the runtime's real code, its own clock, and its own connection to the server. */
export class SimulatedProcess {
  readonly number: number;
  readonly clock: ProcessClock;
  readonly commandTimeoutMs: number;
  readonly #locker: Locker;
  isClosing = false;
  /** On its monotonic clock, as the runtime reads it: when the last wait began. */
  lastWaitSince = 0;

  /** @param runtimeClock its clock as the runtime reads it */
  constructor(
    number: number,
    clock: ProcessClock,
    store: Store,
    commandTimeoutMs: number,
    runtimeClock: Clock = clock,
  ) {
    this.number = number;
    this.clock = clock;
    this.commandTimeoutMs = commandTimeoutMs;
    let ids = 0;
    const own = { newRequestId: () => requestIdOf(number, (ids += 1)) };
    const logger = { warn: () => belongsToNobody("a log line") };
    const commandTimeout = `${commandTimeoutMs}ms` as const;
    this.#locker = Object.assign(createLocker({ store, clock: runtimeClock, commandTimeout, logger }), own);
    const { manager } = this.#locker;
    const join = manager.join.bind(manager);
    manager.join = (waiter) => {
      this.lastWaitSince = waiter.waitsSince;
      return join(waiter);
    };
    Object.assign(manager, own);
  }

  lock(key: string, options: LockOptions): Lock {
    return new Lock(this.#termsOf(options), key);
  }

  locks(keys: readonly string[], options: LockOptions): MultiLock {
    return new MultiLock(this.#termsOf(options), keys);
  }

  #termsOf(options: LockOptions): Terms {
    return termsOf(this.#locker, settle(options, this.#locker.defaults), undefined);
  }

  /** Whether the process grants no more locks. */
  get isClosed(): boolean {
    return this.#locker.manager.isClosed;
  }

  /**
   * Does what `shutdown()` does. The process serves callers while a body runs, at most for the patience. Then it grants no more
   * locks, and revokes those that are held.
   */
  async close(patienceMs: number): Promise<void> {
    if (this.isClosing) return;
    this.isClosing = true;
    const { manager } = this.#locker;
    await manager.drain(patienceMs);
    manager.revokeAll(SHUT_DOWN);
    await manager.settled();
  }

  /** Whether any caller waits or holds. */
  get hasQueues(): boolean {
    return !this.#locker.manager.isEmpty;
  }

  get isRetryingReleases(): boolean {
    return this.#locker.manager.releaseRetries.size > 0;
  }

  /** Resolves when this much of its own time has passed, and it is awake. */
  passes(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }
}

const SHUT_DOWN: Loss = { outcome: "unknown", because: "it was shut down", isEarly: true };
