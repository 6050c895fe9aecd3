/** A key is remembered for at least this long, and at most twice as long, in milliseconds. */
const INTERVAL_MS = 1_000;

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
    if (pastMs < INTERVAL_MS) return;
    this.#earlier = pastMs < 2 * INTERVAL_MS ? this.#keys : new Set();
    this.#keys = new Set();
    this.#since = now;
  }
}
