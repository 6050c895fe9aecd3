import type { Clock } from "../base/clock";
import { milliseconds, type Duration } from "../base/duration";
import {
  errorMessage,
  LockClosedError,
  LockMisconfiguredError,
  LockOptionError,
  LockUnreachableError,
} from "../base/errors";
import { formatValue } from "../base/format-value";
import { checkedKey } from "../base/key";
import { isOptions, readOptions } from "../base/options";
import { inRoot } from "../base/root-context";
import { locker, type Locker } from "../lock/locker";
import { onAbort } from "../lock/on-abort";
import type { Store } from "../stores/port";
import { tryStore } from "../stores/trial";

/** The options of `ready()`. */
export interface ReadyOptions {
  /** The longest wait for the stores. Default `"10s"`. */
  readonly timeout?: Duration;
  /**
   * The beginning of the key of the trial lock, for a Redis user that may use only some keys. A random end follows. Default
   * `"LOCK_lockweave_ready"`.
   */
  readonly key?: string;
}

const KEY = "LOCK_lockweave_ready";

/** If the process dies meanwhile, the key expires after this time. */
const LOCK_TIME_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** The shortest time that the store gets for a reply, even if the timeout of `ready()` is over. */
const LEAST_REPLY_TIME_MS = 200;

/**
 * Waits until each configured store accepts locks. It acquires, renews, and releases a lock of its own in each store, and checks the
 * permission for wake-ups, or the schema of PostgreSQL. So a missing permission shows at startup. It leaves no key behind.
 *
 * @throws {LockMisconfiguredError} if a retry cannot help, such as without a permission
 * @throws {LockUnreachableError} if a store does not accept locks within `timeout`
 * @throws {LockClosedError} if `shutdown()` was called
 */
export async function ready(options: ReadyOptions = {}): Promise<void> {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected ready() or ready({ timeout: "10s" }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  const { timeout = "10s", key = KEY } = readOptions(options, ["timeout", "key"], expected);
  const timeoutMs = milliseconds("timeout", timeout);
  const prefix = checkedKey(key);
  const over = new AbortController();
  const all = [...locker().all.values()];
  try {
    await Promise.all(all.map((one) => inRoot(() => accepts(one, prefix, timeoutMs, over.signal))));
  } finally {
    over.abort(); // If one store cannot work, nobody waits for the others.
  }
}

/** Resolves when the store has accepted a trial lock. */
async function accepts(one: Locker, prefix: string, timeoutMs: number, over: AbortSignal): Promise<void> {
  const { clock, manager, name } = one;
  const until = clock.now() + timeoutMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    if (over.aborted) return;
    if (manager.isDraining || manager.isClosed) throw new LockClosedError("ready(): shutdown() was called");
    try {
      return await inTurn(one, () => tryLock(one, prefix, until));
    } catch (error) {
      const what = `ready(): the store \`${name}\``;
      if (error instanceof LockMisconfiguredError)
        throw new LockMisconfiguredError(`${what} cannot lock: ${error.message}`, {
          cause: error.cause ?? error,
        });
      if (over.aborted) return;
      if (clock.now() + pauseMs >= until)
        throw new LockUnreachableError(
          `${what} accepted no lock within ${timeoutMs} ms: ${errorMessage(error)}`,
          { cause: error },
        );
    }
    await pause(clock, pauseMs, over);
  }
}

/** Resolves after this time, or as soon as the signal aborts. */
function pause(clock: Clock, ms: number, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      stop();
      resolve();
    };
    const cancel = clock.after(ms, end);
    const stop = onAbort(over, end);
  });
}

/** The latest trial of each store. */
const trials = new WeakMap<Store, Promise<void>>();

/** Runs one trial of a store at a time. The store reports a refused wake-up to one check only, so checks must not overlap. */
function inTurn({ manager, store }: Locker, trial: () => Promise<void>): Promise<void> {
  const outcome = (trials.get(store) ?? Promise.resolve()).then(trial);
  const end = outcome.catch(() => {});
  trials.set(store, end);
  manager.waitForTrial(end);
  return outcome;
}

/** @param until on the monotonic clock: the time until which it may wait for replies */
async function tryLock(
  { clock, defaults, manager, newRequestId, store }: Locker,
  prefix: string,
  until: number,
): Promise<void> {
  const { inFlight } = manager;
  const ask = <Reply>(send: (timeoutMs: number) => Promise<Reply>): Promise<Reply> =>
    inFlight.ask(send, Math.max(until - clock.now(), LEAST_REPLY_TIME_MS));
  const lock = {
    key: `${prefix}_${newRequestId()}`,
    lockTimeMs: Math.min(LOCK_TIME_MS, defaults.lockTimeMs),
    ...(defaults.replicas > 0 && { replicas: defaults.replicas }),
  };
  await tryStore(store, lock, newRequestId, ask);
  await ask(async (timeoutMs) => store.ready?.(lock.key, timeoutMs));
}
