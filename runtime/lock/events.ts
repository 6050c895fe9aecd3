import { channel, subscribe, unsubscribe, type Channel } from "node:diagnostics_channel";
import { errorMessage, LockMisconfiguredError, type LockErrorOptions } from "../base/errors";
import { DEFAULT_STORE } from "../base/limits";
import type { Logger } from "../base/logger";
import type { Loss, LossOutcome } from "../queue/loss";
import { inRoot } from "../base/root-context";

/** The fields that identify the lock of a message. */
export interface LockEvent {
  /** The full key. */
  readonly key: string;
  /** The name of its store: `"default"`, or one of `configure({ stores })`. */
  readonly store: string;
  /** The tagged function, such as `OrderService.pay`. */
  readonly site: string | undefined;
  /** The same in all messages of one lock, and different for each lock of one key. */
  readonly requestId: string;
}

/**
 * The way in which a lock ended.
 *
 * - `released`: the store released it.
 * - `handed off`: the next waiter in this process holds it now.
 * - `left to expire`: with `autoUnlock: false`, or with `autoUnlock: "onError"` after a body that succeeded.
 * - `stolen`: another caller held the key.
 * - `deleted`: the key disappeared before the lock time was over.
 * - `expired`: the lock time was over.
 * - `revoked`: `forceRelease()` or `shutdown()` took the lock from its body.
 * - `unknown`: the store did not reply.
 */
export type Outcome = "released" | "handed off" | "left to expire" | LossOutcome;

/**
 * The way in which a wait ended without the lock.
 *
 * - `failed`: the caller gets an error: the budget was spent, a signal aborted, `shutdown()` was called, or the store failed.
 * - `skipped`: another caller held the lock, and the body is skipped, as `onFailure: "skip"` says. `tryObtain()` does this, too.
 * - `unreachable`: the store did not reply, and the body is skipped, as `onUnreachable: "skip"` says.
 * - `abandoned`: the caller released the lock first. A lock of several keys does so before it tries again.
 */
export type GiveUpOutcome = "failed" | "skipped" | "unreachable" | "abandoned";

/**
 * The messages on `node:diagnostics_channel`, by the name of the channel. Times are in milliseconds. Without a subscriber, Lockweave creates
 * no message.
 *
 * Each lock begins with `acquire`. It ends with `release` if it was granted, and otherwise with `give-up`. A reentrant call that enters a
 * held lock publishes nothing.
 *
 * Subscribers to `acquire` run in the caller's async context, so that a span has its parent. All others run outside it, and `requestId`
 * identifies the lock.
 */
export interface LockEvents {
  /** A caller asks for the lock. */
  "lockweave:acquire": LockEvent;
  /** The lock is busy, and the caller waits. */
  "lockweave:wait": LockEvent;
  /** The caller holds the lock. */
  "lockweave:grant": LockEvent & { readonly waitedMs: number; readonly fencingToken: number | undefined };
  /** The wait ended without the lock. */
  "lockweave:give-up": LockEvent & { readonly waitedMs: number; readonly outcome: GiveUpOutcome };
  /** The watchdog renewed the lock. */
  "lockweave:renew": LockEvent;
  /** The lock ended, or may have ended, before its body did. */
  "lockweave:lost": LockEvent & { readonly reason: string };
  /** The lock has ended. See {@link Outcome}. */
  "lockweave:release": LockEvent & { readonly heldMs: number; readonly outcome: Outcome };
}

/** Listeners for some of the messages. */
export type LockListeners = Partial<{
  readonly [Name in keyof LockEvents]: (event: LockEvents[Name]) => void;
}>;

/** Subscribes the listeners. Returns a function that unsubscribes them. */
export function listenToLocks(listeners: LockListeners): () => void {
  const subscribed = Object.entries(listeners).map(([name, listener]) => {
    const hear = (event: unknown): void => (listener as (event: unknown) => void)(event);
    subscribe(name, hear);
    return { name, hear };
  });
  return () => {
    for (const { name, hear } of subscribed) unsubscribe(name, hear);
  };
}

const acquire = channel("lockweave:acquire");
const wait = channel("lockweave:wait");
const grant = channel("lockweave:grant");
const giveUp = channel("lockweave:give-up");
const renew = channel("lockweave:renew");
const lost = channel("lockweave:lost");
const release = channel("lockweave:release");

/** The name of the lock in messages: its key and store, and the function that asked for it. */
export function nameOf(lock: LockEvent): string {
  const { site } = lock;
  return site === undefined ? keyInStore(lock) : `${keyInStore(lock)} (${site})`;
}

/** The fields of an error about this lock. */
export function lockOf({
  key,
  site,
}: Pick<LockEvent, "key" | "site">): Pick<LockErrorOptions, "key" | "site"> {
  return { key, site };
}

/** The key, and the name of the store unless it is the default. The same key in another store is another lock. */
export function keyInStore({ key, store }: Pick<LockEvent, "key" | "store">): string {
  return store === DEFAULT_STORE ? key : `${key} in ${store}`;
}

/** Reports what happens to locks, to the logger and to subscribers of the channels. */
export class Events {
  readonly #logger: Logger;
  /** The number of lost locks, by store. */
  readonly #lost = new Map<string, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Publishes in the caller's context, so that a span that begins here is a child of the caller's span. */
  asks(lock: LockEvent): void {
    if (acquire.hasSubscribers) acquire.publish(fieldsOf(lock));
  }

  waits(lock: LockEvent): void {
    this.#logger.debug?.(`${prefixOf(lock)} waits`, fieldsOf(lock));
    if (wait.hasSubscribers) publish(wait, fieldsOf(lock));
  }

  holds(lock: LockEvent & { readonly fencingToken: number | undefined }, waitedMs: number): void {
    this.#logger.debug?.(`${prefixOf(lock)} holds the lock after ${Math.round(waitedMs)} ms`, {
      ...fieldsOf(lock),
      waitedMs,
    });
    if (!grant.hasSubscribers) return;
    const { fencingToken } = lock;
    publish(grant, { ...fieldsOf(lock), waitedMs, fencingToken });
  }

  givesUp(lock: LockEvent, waitedMs: number, outcome: GiveUpOutcome): void {
    this.#logger.debug?.(`${prefixOf(lock)} gives up after ${Math.round(waitedMs)} ms`, {
      ...fieldsOf(lock),
      waitedMs,
      outcome,
    });
    if (giveUp.hasSubscribers) publish(giveUp, { ...fieldsOf(lock), waitedMs, outcome });
  }

  /** Returns whether the channel has subscribers. */
  renewed(lock: LockEvent): boolean {
    if (!renew.hasSubscribers) return false;
    publish(renew, fieldsOf(lock));
    return true;
  }

  /** Returns the number of locks of the store that were lost so far. */
  lostCount(store: string): number {
    return this.#lost.get(store) ?? 0;
  }

  /** Counts a lock that was lost. `lost` does so itself. */
  countLoss({ store }: LockEvent): void {
    this.#lost.set(store, this.lostCount(store) + 1);
  }

  lost(lock: LockEvent, { because }: Loss): void {
    this.countLoss(lock);
    this.#logger.warn(`${prefixOf(lock)} lost the lock: ${because}`, {
      ...fieldsOf(lock),
      code: "LOCK_LOST",
    });
    if (lost.hasSubscribers) publish(lost, { ...fieldsOf(lock), reason: because });
  }

  ends(lock: LockEvent, outcome: Outcome, heldMs: number, trouble: unknown): void {
    if (outcome === "unknown") {
      const explanation = `the store did not confirm the release (${errorMessage(trouble)}). Lockweave resends it. The key expires within its lock time`;
      this.#logger.warn(`${endOf(lock, outcome, heldMs)}: ${explanation}`, {
        ...fieldsOf(lock),
        heldMs,
        outcome,
      });
    } else {
      this.#logger.debug?.(endOf(lock, outcome, heldMs), { ...fieldsOf(lock), heldMs, outcome });
    }
    if (release.hasSubscribers) publish(release, { ...fieldsOf(lock), heldMs, outcome });
  }
}

/** Publishes in the root context, because another caller's code may be running. */
function publish(to: Channel, event: object): void {
  inRoot(() => to.publish(event));
}

/** The name of the lock, and the end of its request ID. A request ID begins with the number of the process. */
function prefixOf(lock: LockEvent): string {
  return `${nameOf(lock)} ${lock.requestId.slice(-8)}`;
}

function endOf(lock: LockEvent, outcome: Outcome, heldMs: number): string {
  return `${prefixOf(lock)} ${outcome} after ${Math.round(heldMs)} ms`;
}

/** Returns the fields of an event, and of a log line, about this lock. */
export function fieldsOf({ key, store, site, requestId }: LockEvent): LockEvent {
  return { key, store, site, requestId };
}

/**
 * Adds the name of the lock to an error of the store that a retry cannot help. The store does not know the function, and may give one error to
 * several callers. Returns all other errors unchanged.
 */
export function namedError(lock: LockEvent, error: unknown): unknown {
  if (!(error instanceof LockMisconfiguredError)) return error;
  const { message, cause = error } = error;
  return new LockMisconfiguredError(`${nameOf(lock)}: ${message}`, { ...lockOf(lock), cause });
}
