import { CLAIM_TIME_MS } from "../stores/port";

/** The time between two requests of the first waiter if no wake-up arrives. It is short enough to claim a key that is reserved for the waiter. */
const POLL_INTERVAL_MS = CLAIM_TIME_MS * (2 / 3);

/** Waiters ask again at multiples of this time, so that the waiters of one process share a command. */
const POLL_ALIGNMENT_MS = POLL_INTERVAL_MS / 10;

/** The same for a store without a queue, which sends no wake-ups. The interval varies, so that processes take turns at being first. */
const POLL_INTERVAL_WITHOUT_QUEUE_MS = { from: 50, to: 150 };

/** A key that somebody else holds, as far as its acquisition knows. Plans the next request for the key. */
export class BusyKey {
  /** The value of the key in the last refusal. */
  heldBy: string | undefined;
  /** The time until the key becomes free at the latest, in milliseconds from the last refusal, if the store reported it. */
  freeInMs: number | undefined;
  /** On the monotonic clock: when the store last replied that somebody else holds the key. */
  #foundAt: number | undefined;
  /** On the monotonic clock: the time until which callers of other processes may try first. */
  #pausesUntil: number | undefined;

  /** Whether the store has replied that somebody else holds the key. */
  get wasFound(): boolean {
    return this.#foundAt !== undefined;
  }

  onFound(now: number): void {
    this.#foundAt = now;
  }

  /** Whether the last such reply is recent: the next poll, with the usual timeout, may not have ended yet. */
  wasFoundLately(now: number, usualTimeoutMs: number): boolean {
    return now - (this.#foundAt ?? -Infinity) < POLL_INTERVAL_MS + usualTimeoutMs;
  }

  /** Lets callers of other processes try first. */
  pause(now: number): void {
    this.#pausesUntil = now + pollIntervalWithoutQueue();
  }

  isPaused(now: number): boolean {
    return this.#pausesUntil !== undefined && now < this.#pausesUntil;
  }

  /** The time until the next request if no wake-up arrives, in milliseconds. */
  retryInMs(now: number, hasQueue: boolean): number {
    if (this.#pausesUntil !== undefined && now < this.#pausesUntil) return this.#pausesUntil - now;
    const untilPollMs = hasQueue
      ? POLL_INTERVAL_MS - (Math.floor(now) % POLL_ALIGNMENT_MS)
      : pollIntervalWithoutQueue();
    return Math.min(this.freeInMs ?? Infinity, untilPollMs);
  }
}

function pollIntervalWithoutQueue(): number {
  const { from, to } = POLL_INTERVAL_WITHOUT_QUEUE_MS;
  return from + Math.random() * (to - from);
}

/** A key is remembered for at least this long, and at most twice as long, in milliseconds. */
const REMEMBERED_MS = 1_000;

/** Remembers the keys that somebody else was recently found to hold. They are probably still held at the next request. */
export class Contended {
  #since = 0;
  #keys = new Set<string>();
  /** The keys of the previous interval. */
  #earlier = new Set<string>();

  add(key: string, now: number): void {
    this.#rotate(now);
    this.#keys.add(key);
  }

  has(key: string, now: number): boolean {
    this.#rotate(now);
    return this.#keys.has(key) || this.#earlier.has(key);
  }

  #rotate(now: number): void {
    const pastMs = now - this.#since;
    if (pastMs < REMEMBERED_MS) return;
    this.#earlier = pastMs < 2 * REMEMBERED_MS ? this.#keys : new Set();
    this.#keys = new Set();
    this.#since = now;
  }
}
