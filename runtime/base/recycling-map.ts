/** The map is rebuilt when the number of deleted entries exceeds this number plus the size of the map. */
const MIN_DELETED = 1_000;

/**
 * A map for entries that come and go all the time, in no order. From time to time, it copies its entries into a new map.
 *
 * A `Map` in V8 links each table that it outgrew to the next one. Once a table is old for the garbage collector, it keeps all later tables,
 * and everything that was in them, from being collected early. Measured, that is a third more work for a busy process. A new map breaks the
 * chain.
 */
export class RecyclingMap<Key, Value extends object> {
  #map = new Map<Key, Value>();
  #deleted = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value);
  }

  /** Returns whether the key was present. */
  delete(key: Key): boolean {
    if (!this.#map.delete(key)) return false;
    this.#deleted += 1;
    if (this.#deleted > MIN_DELETED + this.#map.size) {
      this.#map = new Map(this.#map);
      this.#deleted = 0;
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
