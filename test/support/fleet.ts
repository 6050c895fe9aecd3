import type { ExecutionContext } from "ava";
import { createLocker, type Configuration } from "../../runtime/configure";
import { Lock, type FailureClass } from "../../runtime/lock/lock";
import { MultiLock } from "../../runtime/lock/multi-lock";
import type { Locker } from "../../runtime/lock/locker";
import { runInside } from "../../runtime/lock/reentrancy";
import { settle, type LockOptions } from "../../runtime/lock/settings";
import { memoryStore } from "../../runtime/stores/memory";
import type { Store } from "../../runtime/stores/port";
import { TamperedStore } from "./tampered-store";
import { VirtualClock } from "./virtual-clock";

type Body<T> = (lock: Lock) => T | PromiseLike<T>;

/** What a call may have beside its options and its body. */
interface CallExtras {
  readonly Failure?: FailureClass | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly site?: string | undefined;
}

/** One process of a fleet: its own queues of waiters, the same store. */
export class FleetProcess {
  readonly locker: Locker;

  /** @param own what the process has instead of what a configuration gives */
  constructor(configuration: Configuration, own: Partial<Pick<Locker, "newRequestId">> = {}) {
    this.locker = Object.assign(createLocker(configuration), own);
  }

  /** Whether nobody waits or holds in it. */
  get isIdle(): boolean {
    return this.locker.queues.isEmpty;
  }

  /** As `shutdown()` does after its patience: no lock is given any more. */
  close(): void {
    this.locker.queues.close();
  }

  lock(key: string, options: LockOptions = {}, site?: string): Lock {
    return new Lock({ locker: this.locker, settings: settle(options, this.locker.defaults), site }, key);
  }

  locks(keys: readonly string[], options: LockOptions = {}): MultiLock {
    const settings = settle(options, this.locker.defaults);
    return new MultiLock({ locker: this.locker, settings, site: undefined }, keys);
  }

  /** Calls a function with a tag: what the weave puts around its body, step by step. */
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
  /** The store itself, as a foreigner to the fleet reaches it. */
  readonly memory: Store;
  /** The store as the fleet reaches it. */
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

  /** Somebody outside the fleet takes the key, and says nothing more. */
  async foreignHolder(key: string, lockTimeMs: number): Promise<void> {
    await this.memory.acquire({ key, requestId: FOREIGNER, lockTimeMs, fencing: false }, TIMEOUT_MS);
  }

  /** The foreigner gives the key back. */
  async foreignerLeaves(key: string): Promise<void> {
    await this.memory.release({ key, requestId: FOREIGNER }, TIMEOUT_MS);
  }

  /** What the key holds in the store, whoever wrote it. */
  async valueOf(key: string): Promise<string | undefined> {
    const [value] = await this.memory.peek([key], TIMEOUT_MS);
    if (value instanceof Error) throw value;
    return value;
  }

  /** The key is taken from whoever holds it. Where somebody waits, the queue has its turn, as at the end of any hold. */
  async takeAway(key: string): Promise<void> {
    const requestId = await this.valueOf(key);
    if (requestId !== undefined) await this.memory.release({ key, requestId }, TIMEOUT_MS);
  }

  /** Whether nobody holds the key, and it is kept for nobody. */
  async isFree(key: string): Promise<boolean> {
    return (await this.valueOf(key)) === undefined;
  }

  /** Whether nobody holds the key, and nobody has a place in its queue. */
  async isForgotten(key: string): Promise<boolean> {
    const request = { key, requestId: PROBE, lockTimeMs: 1, fencing: false };
    if (!(await this.memory.acquire(request, TIMEOUT_MS)).acquired) return false;
    await this.memory.release({ key, requestId: PROBE }, TIMEOUT_MS);
    // Where somebody waits, the key is kept for the first of them now.
    return await this.isFree(key);
  }

  /** Nobody of the processes holds the key or waits for it, in the store or here, and nothing is to come. */
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
