/// <reference lib="esnext.disposable" preserve="true" />
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { configureForTests, shutdown } from "./config/configure";
import { LockNotWovenError, LockOptionError } from "./base/errors";
import { nameOf, keyInStore, type LockEvent } from "./lock/events";
import { trackBodies } from "./lock/reentrancy";
import { isOptions, readOptions } from "./base/options";
import { formatValue } from "./base/format-value";
import { memoryStore } from "./stores/memory";
import type { GuardRequest, Store } from "./stores/port";
import { TEST_FIXES } from "./woven/woven";

export { assertWoven } from "./woven/woven";

/** The options of `testLocks()`. */
export interface TestLocksOptions {
  /** Lets callers wait as long as their tags say. By default, a busy lock fails immediately. */
  readonly waiting?: boolean;
  /** `false` if this test file is not woven, such as JavaScript that tests woven output. */
  readonly woven?: boolean;
}

/** The locks of unit tests. */
export interface TestLocks extends AsyncDisposable {
  /**
   * The keys of the locks that were acquired since the last `reset()`, in order: `["LOCK_payOrder_A1"]`. For a named store, with its
   * name: `"LOCK_payOrder_A1 in payments"`.
   */
  readonly acquired: readonly string[];
  /** The keys of the locks that are held now. */
  readonly held: readonly string[];
  /**
   * Clears `acquired` and starts with an empty store. Call it after each test.
   *
   * @throws {Error} if the test still holds a lock
   */
  reset(): Promise<void>;
  /** Resets as `reset()` does, and removes the test locks. Call it after all tests. */
  close(): Promise<void>;
}

/**
 * Replaces `configure()` in unit tests. Locks live in memory, and a busy lock fails immediately. Every store that a tag names exists.
 *
 * @param handshake written by the transformer. Without it, this call throws, so that no test passes in an unwoven build
 * @throws {LockNotWovenError} if the calling code was not woven
 * @throws {LockMisconfiguredError} if locks are already configured
 */
export function testLocks(options: TestLocksOptions = {}, handshake?: "woven"): TestLocks {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected testLocks() or testLocks({ waiting: true }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  const { waiting = false, woven = true } = readOptions(options, ["waiting", "woven"], expected);
  if (typeof waiting !== "boolean" || typeof woven !== "boolean") throw expected();
  if (woven && handshake !== "woven") throw new LockNotWovenError(NOT_WOVEN);
  return new MemoryLocks(waiting);
}

const NOT_WOVEN = `The file that calls testLocks() was not woven, so functions with @redisLock may run unlocked in this test. ${TEST_FIXES}
  - In a plain JavaScript test of woven output, call testLocks({ woven: false }), and assertWoven() for each tagged function.
  - Call testLocks() directly by its imported name. Do not pass it as a value.`;

const TIMEOUT_MS = 1_000;

/** Returns a store in memory whose locks can be guarded. A guard sends no statement, because a test needs no tables for locks. */
function guardedMemoryStore(): Store {
  const store = memoryStore();
  const isHeld = async ({ key, requestId }: GuardRequest): Promise<boolean> => {
    const { holds } = await store.admin.inspect(key, TIMEOUT_MS);
    return holds.some(({ value }) => value === requestId);
  };
  return Object.assign(store, {
    transactions: { guard: (holds: readonly GuardRequest[]) => Promise.all(holds.map(isHeld)) },
  });
}

class MemoryLocks implements TestLocks {
  acquired: string[] = [];
  readonly #canWait: boolean;
  readonly #held = new Map<string, LockEvent>();

  constructor(canWait: boolean) {
    this.#canWait = canWait;
    trackBodies(); // So a call that waits for its own caller says so.
    this.#begin();
  }

  get held(): readonly string[] {
    return Array.from(this.#held.values(), keyInStore);
  }

  async reset(): Promise<void> {
    try {
      await this.close();
    } finally {
      this.#begin();
    }
  }

  async close(): Promise<void> {
    const left = Array.from(this.#held.values(), nameOf);
    await shutdown({ patience: "0s" });
    unsubscribe("lockweave:grant", this.#onGrant);
    unsubscribe("lockweave:release", this.#onRelease);
    this.#held.clear();
    if (left.length === 0) return;
    throw new Error(
      `These locks are still held at the end of the test: ${left.join(", ")}. Fix: await the locked calls in the test`,
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(): void {
    // If the caller did not await the release, the next call could still find the key held.
    const always = { release: "awaited" } as const;
    configureForTests(
      guardedMemoryStore,
      this.#canWait ? always : { ...always, retryTimes: 0, waitMs: undefined },
    );
    this.acquired = [];
    subscribe("lockweave:grant", this.#onGrant);
    subscribe("lockweave:release", this.#onRelease);
  }

  readonly #onGrant = (message: unknown): void => {
    const event = message as LockEvent;
    this.acquired.push(keyInStore(event));
    this.#held.set(event.requestId, event);
  };

  readonly #onRelease = (message: unknown): void => {
    this.#held.delete((message as LockEvent).requestId);
  };
}
