import { inRoot } from "../base/root-context";
import { locker, type Locker } from "../lock/locker";
import type { StoreState } from "../stores/port";

/** The health of one store. */
export interface StoreHealth {
  /** `starting` until the store replies for the first time, `down` if it does not reply now or `shutdown()` was called. */
  readonly status: StoreState;
  /** The time since the store last replied, in milliseconds. `undefined` if it never has. */
  readonly sinceReplyMs: number | undefined;
  /** The number of locks that this process holds. A lock of several keys counts once for each key. */
  readonly held: number;
  /** The number of calls of this process that wait for a lock. */
  readonly waiting: number;
  /** The number of locks that ended before their bodies did, since `configure()`. */
  readonly lost: number;
}

/** The health of the locks of this process. */
export interface Health {
  /** `up` if all stores are up. `down` if one of them is down, and otherwise `starting`. */
  readonly status: StoreState;
  /** The stores by name. The store in `redis`, `postgres`, or `store` is `default`. */
  readonly stores: Readonly<Record<string, StoreHealth>>;
}

/** A store that has replied within this time needs no probe. */
const PROBE_AFTER_MS = 1_000;

/** A key that no lock uses. The probe only reads it. */
const PROBED_KEY = "LOCK_lockweave_health";

/**
 * Returns the state of the stores, and how many locks this process holds, waits for, and has lost. It returns immediately, so a probe can
 * call it every second. If a store has not replied for a second, it also sends one read in the background, so that the next call knows
 * whether the store is still there.
 *
 * @throws {LockMisconfiguredError} if `configure()` was not called
 */
export function health(): Health {
  const all = Array.from(locker().all.values(), (one) => [one.name, healthOf(one)] as const);
  const has = (wanted: StoreState): boolean => all.some(([, { status }]) => status === wanted);
  const status = has("down") ? "down" : has("starting") ? "starting" : "up";
  return { status, stores: Object.fromEntries(all) };
}

function healthOf(one: Locker): StoreHealth {
  const { clock, events, manager, name } = one;
  const { answeredAt } = manager.inFlight;
  const sinceReplyMs = answeredAt === -Infinity ? undefined : Math.max(clock.now() - answeredAt, 0);
  if (sinceReplyMs === undefined || sinceReplyMs >= PROBE_AFTER_MS) probe(one);
  return { status: statusOf(one), sinceReplyMs, ...manager.counts(), lost: events.lostCount(name) };
}

function statusOf({ manager, store }: Locker): StoreState {
  if (manager.isDraining || manager.isClosed) return "down";
  const connection = connectionOf(store);
  if (connection === "starting" || connection === "down") return connection;
  const { answeredAt, isFailing } = manager.inFlight;
  const hasAnswered = answeredAt !== -Infinity;
  if (isFailing) return hasAnswered ? "down" : "starting";
  return connection === "up" || hasAnswered ? "up" : "starting";
}

/** Returns the state that the store itself reports. */
function connectionOf(store: Locker["store"]): StoreState | undefined {
  try {
    return store.state?.();
  } catch {
    return undefined; // A store of the user may fail. Its commands show more.
  }
}

function probe({ manager, store }: Locker): void {
  const { inFlight, isClosed } = manager;
  if (isClosed || inFlight.size > 0) return;
  void inRoot(() => inFlight.ask((timeoutMs) => store.peek([PROBED_KEY], timeoutMs))).catch(() => {});
}
