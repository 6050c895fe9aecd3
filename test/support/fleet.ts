import type { ExecutionContext } from "ava";
import { createLocker } from "../../runtime/config/create-locker";
import type { Configuration } from "../../runtime/config/configuration";
import { Lock } from "../../runtime/lock/lock";
import { MultiLock } from "../../runtime/lock/multi-lock";
import { termsOf, type Locker, type Terms } from "../../runtime/lock/locker";
import type { FailureClass } from "../../runtime/lock/wait";
import { runInside } from "../../runtime/lock/reentrancy";
import { settle, type LockOptions } from "../../runtime/lock/settings";
import { memoryStore } from "../../runtime/stores/memory";
import type { WholeStore } from "../../runtime/stores/port";
import { TamperedStore } from "./tampered-store";
import { VirtualClock } from "./virtual-clock";

type Body<T> = (lock: Lock) => T | PromiseLike<T>;

/** Further arguments of a call. */
interface CallExtras {
  readonly Failure?: FailureClass | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly site?: string | undefined;
}

/** One process of a fleet. It has its own local queues and the shared store. */
export class FleetProcess {
  readonly locker: Locker;

  /** @param own overrides what the configuration would create */
  constructor(configuration: Configuration, own: Partial<Pick<Locker, "newRequestId">> = {}) {
    this.locker = Object.assign(createLocker(configuration), own);
  }

  /** Whether the process has no holder and no waiter. */
  get isIdle(): boolean {
    return this.locker.manager.isEmpty;
  }

  /** Refuses all further locks, as `shutdown()` does after its patience. */
  close(): void {
    this.locker.manager.close();
  }

  lock(key: string, options: LockOptions = {}, site?: string): Lock {
    return new Lock(this.#termsOf(options, site), key);
  }

  locks(keys: readonly string[], options: LockOptions = {}): MultiLock {
    return new MultiLock(this.#termsOf(options), keys);
  }

  #termsOf(options: LockOptions, site?: string): Terms {
    return termsOf(this.locker, settle(options, this.locker.defaults), site);
  }

  /** Calls a tagged function, with the same steps that the weave puts around its body. */
  async call<T>(
    key: string,
    options: LockOptions,
    body: Body<T>,
    { Failure, signal, site }: CallExtras = {},
  ): Promise<T | undefined> {
    const lock = this.lock(key, options, site);
    while (!(await lock.acquire(signal))) if (!(await lock.retryCheck(Failure))) return undefined;
    try {
      lock.assertHeld();
      return await (options.reentrant === true || options.mode === "read"
        ? runInside([lock], () => body(lock))
        : body(lock));
    } catch (error) {
      throw lock.fail(error);
    } finally {
      await lock.release();
    }
  }
}

/** Processes that share one store under virtual time. */
export class Fleet {
  readonly clock: VirtualClock;
  /** The store itself, as another program would use it. */
  readonly memory: WholeStore;
  /** The store as the processes of the fleet use it. */
  readonly store: TamperedStore;
  readonly warnings: string[] = [];

  constructor(clock = new VirtualClock()) {
    this.clock = clock;
    this.memory = memoryStore({ clock });
    this.store = new TamperedStore(this.memory);
  }

  process(configuration: Omit<Configuration, "redis"> = {}): FleetProcess {
    const logger = { warn: (message: string) => void this.warnings.push(message) };
    return new FleetProcess({ logger, store: this.store, clock: this.clock, ...configuration });
  }

  /** Acquires the key for a holder outside of the fleet, which never renews it. */
  async acquireElsewhere(key: string, lockTimeMs: number): Promise<void> {
    await this.memory.acquire({ key, requestId: FOREIGNER, lockTimeMs, fencing: false }, TIMEOUT_MS);
  }

  /** Releases the key of the holder outside of the fleet. */
  async releaseElsewhere(key: string): Promise<void> {
    await this.memory.release({ key, requestId: FOREIGNER }, TIMEOUT_MS);
  }

  /** Returns the value of the key in the store. */
  async valueOf(key: string): Promise<string | undefined> {
    const [value] = await this.memory.peek([key], TIMEOUT_MS);
    if (value instanceof Error) throw value;
    return value;
  }

  /** Releases the key behind its holder's back. The first waiter gets it, as after any release. */
  async endHold(key: string): Promise<void> {
    const requestId = await this.valueOf(key);
    if (requestId !== undefined) await this.memory.release({ key, requestId }, TIMEOUT_MS);
  }

  /** Whether the key is neither held nor reserved. */
  async isFree(key: string): Promise<boolean> {
    return (await this.valueOf(key)) === undefined;
  }

  /** Whether nobody holds the key, and its queue is empty. */
  async isForgotten(key: string): Promise<boolean> {
    const request = { key, requestId: PROBE, lockTimeMs: 1, fencing: false };
    if (!(await this.memory.acquire(request, TIMEOUT_MS)).acquired) return false;
    await this.memory.release({ key, requestId: PROBE }, TIMEOUT_MS);
    // If the queue has a waiter, the key is reserved for it now.
    return await this.isFree(key);
  }

  /** Asserts that nobody holds the key or waits for it, and that no timer is pending. */
  async leftNothing(t: ExecutionContext, key: string, ...processes: FleetProcess[]): Promise<void> {
    await this.clock.settle();
    t.true(await this.isForgotten(key), "nobody holds the key or waits for it");
    t.is(this.clock.pendingTimers, 0);
    t.true(processes.every(({ isIdle }) => isIdle));
  }
}

const FOREIGNER = "0".repeat(32);
const PROBE = "f".repeat(32);
const TIMEOUT_MS = 1_000;
