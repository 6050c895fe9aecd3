/** For so long at least, and twice as long at most, a key is remembered, in milliseconds. */
const LATELY_MS = 1_000;

/** Of keys that somebody else was found to hold lately: most likely somebody does when they are asked for next. */
export class Contended {
  #since = 0;
  #keys = new Set<string>();
  /** Those of the time before. */
  #earlier = new Set<string>();

  add(key: string, now: number): void {
    this.#goOn(now);
    this.#keys.add(key);
  }

  has(key: string, now: number): boolean {
    this.#goOn(now);
    return this.#keys.has(key) || this.#earlier.has(key);
  }

  #goOn(now: number): void {
    const pastMs = now - this.#since;
    if (pastMs < LATELY_MS) return;
    this.#earlier = pastMs < 2 * LATELY_MS ? this.#keys : new Set();
    this.#keys = new Set();
    this.#since = now;
  }
}
