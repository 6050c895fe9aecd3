/** How many leave before the map starts anew, unless more than that are there. */
const LEAST_LEAVING = 64;

/**
 * A map of those who come and go all the time.
 *
 * A `Map` in V8 links the table that it outgrew to the next one. A table that has become old, in the sense of the garbage
 * collector, so keeps all later ones from being freed early, with everything that was in them: measured, a third more
 * work for a busy process. This one breaks the chain by starting a new `Map` now and then.
 */
export class Roster<Key, Value> {
  #map = new Map<Key, Value>();
  #left = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value);
  }

  /** Whether it was there. */
  delete(key: Key): boolean {
    if (!this.#map.delete(key)) return false;
    this.#left += 1;
    if (this.#left >= Math.max(this.#map.size, LEAST_LEAVING)) {
      this.#left = 0;
      this.#map = new Map(this.#map);
    }
    return true;
  }

  entries(): Iterable<[Key, Value]> {
    return this.#map.entries();
  }

  values(): Iterable<Value> {
    return this.#map.values();
  }
}
