import { createLocker } from "../../runtime/config/configure";
import type { Clock } from "../../runtime/base/clock";
import { Lock } from "../../runtime/lock/lock";
import { MultiLock } from "../../runtime/lock/multi-lock";
import type { Locker } from "../../runtime/lock/locker";
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
    const { queues } = this.#locker;
    const join = queues.join.bind(queues);
    queues.join = (waiter) => {
      this.lastWaitSince = waiter.waitsSince;
      return join(waiter);
    };
    Object.assign(queues, own);
  }

  lock(key: string, options: LockOptions): Lock {
    const { defaults } = this.#locker;
    return new Lock({ locker: this.#locker, settings: settle(options, defaults), site: undefined }, key);
  }

  locks(keys: readonly string[], options: LockOptions): MultiLock {
    const settings = settle(options, this.#locker.defaults);
    return new MultiLock({ locker: this.#locker, settings, site: undefined }, keys);
  }

  /** Whether the process grants no more locks. */
  get isClosed(): boolean {
    return this.#locker.queues.isClosed;
  }

  /**
   * Does what `shutdown()` does. The process serves callers while a body runs, at most for the patience. Then it grants no more
   * locks, and revokes those that are held.
   */
  async close(patienceMs: number): Promise<void> {
    if (this.isClosing) return;
    this.isClosing = true;
    const { queues } = this.#locker;
    await queues.drain(patienceMs);
    queues.revokeAll(SHUT_DOWN);
    await queues.settled();
  }

  /** Whether any caller waits or holds. */
  get hasQueues(): boolean {
    return !this.#locker.queues.isEmpty;
  }

  get isGivingBack(): boolean {
    return this.#locker.queues.releaseRetries.size > 0;
  }

  /** Resolves when this much of its own time has passed, and it is awake. */
  passes(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }
}

const SHUT_DOWN: Loss = { outcome: "unknown", because: "it was shut down", isEarly: true };
