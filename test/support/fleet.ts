import { createLocker, type Configuration } from "../../runtime/configure";
import { Lock, type FailureClass } from "../../runtime/lock";
import type { Locker } from "../../runtime/locker";
import { runInside } from "../../runtime/reentrancy";
import { settle, type LockOptions } from "../../runtime/settings";
import { memoryStore } from "../../runtime/stores/memory";
import { TamperedStore } from "./tampered-store";
import { VirtualClock } from "./virtual-clock";

type Body<T> = (lock: Lock) => T | PromiseLike<T>;

/** One process of a fleet: its own lines of waiters, the same store. */
export class FleetProcess {
  readonly locker: Locker;

  /** @param own what the process has instead of what a configuration gives */
  constructor(configuration: Configuration, own: Partial<Pick<Locker, "newRequestId">> = {}) {
    this.locker = Object.assign(createLocker(configuration), own);
  }

  lock(key: string, options: LockOptions = {}, site?: string): Lock {
    return new Lock({ locker: this.locker, settings: settle(options, this.locker.defaults), site }, key);
  }

  /** Calls a function with a tag: what the weave puts around its body, step by step. */
  async call<T>(
    key: string,
    options: LockOptions,
    body: Body<T>,
    Failure?: FailureClass,
  ): Promise<T | undefined> {
    const lock = this.lock(key, options);
    while (!(await lock.acquire())) if (!(await lock.retryCheck(Failure))) return undefined;
    try {
      return await (options.reentrant === true ? runInside(lock, () => body(lock)) : body(lock));
    } catch (error) {
      throw lock.fail(error);
    } finally {
      await lock.release();
    }
  }
}

/** Processes that share one store under virtual time. */
export class Fleet {
  readonly clock = new VirtualClock();
  /** The store itself, as a foreigner to the fleet reaches it. */
  readonly memory = memoryStore({ clock: this.clock });
  /** The store as the fleet reaches it. */
  readonly store = new TamperedStore(this.memory);
  readonly warnings: string[] = [];

  process(configuration: Omit<Configuration, "redis" | "clock"> = {}): FleetProcess {
    const logger = { warn: (message: string) => void this.warnings.push(message) };
    return new FleetProcess({ logger, store: this.store, ...configuration, clock: this.clock });
  }

  /** Somebody outside the fleet takes the key, and says nothing more. */
  async foreignHolder(key: string, lockTimeMs: number): Promise<void> {
    await this.memory.acquire({ key, requestId: FOREIGNER, lockTimeMs, fencing: false });
  }

  /** The foreigner gives the key back. */
  async foreignerLeaves(key: string): Promise<void> {
    await this.memory.release(key, FOREIGNER);
  }

  /** Whether nobody holds the key. */
  async isFree(key: string): Promise<boolean> {
    const requestId = PROBE;
    const { granted } = await this.memory.acquire({ key, requestId, lockTimeMs: 1, fencing: false });
    if (granted) await this.memory.release(key, requestId);
    return granted;
  }

  /** Whether nobody holds the key, and nobody has a place in its queue. */
  async isForgotten(key: string): Promise<boolean> {
    const probe = { key, requestId: PROBE, lockTimeMs: 1, fencing: false };
    const next = { ...probe, requestId: "e".repeat(32) };
    if (!(await this.memory.acquire(probe)).granted) return false;
    // The lock goes straight to the next only when nobody was there before.
    const { handedOn } = await this.memory.release(key, PROBE, next);
    await this.memory.leave(key, next.requestId);
    return handedOn !== undefined;
  }
}

const FOREIGNER = "0".repeat(32);
const PROBE = "f".repeat(32);
