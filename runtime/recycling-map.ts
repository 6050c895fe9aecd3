/** After so many have left at least, and more than are there, it starts anew. */
const MANY = 1_000;

/**
 * A map of those who come and go all the time, in no order. Now and then it starts anew with those who are there.
 *
 * A `Map` in V8 links the table that it outgrew to the next one. A table that has become old, in the sense of the garbage
 * collector, so keeps all later ones from being freed early, with everything that was in them: measured, a third more
 * work for a busy process. To start anew breaks the chain.
 */
export class RecyclingMap<Key, Value extends object> {
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
    if (this.#left > MANY + this.#map.size) {
      this.#map = new Map(this.#map);
      this.#left = 0;
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
