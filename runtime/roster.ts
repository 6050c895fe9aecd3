/** How many who left are remembered at most, unless more than that are there. */
const FEW = 64;

/**
 * A map of those who come and go all the time, in no order. It remembers the keys of those who left, until it starts
 * anew with those who are there.
 *
 * A `Map` in V8 links the table that it outgrew to the next one. A table that has become old, in the sense of the garbage
 * collector, so keeps all later ones from being freed early, with everything that was in them: measured, a third more
 * work for a busy process. To start anew breaks the chain. And a `Map` that loses its last entry gets a new table,
 * which would happen with each lock of a lone caller.
 */
export class Roster<Key, Value extends object> {
  #map = new Map<Key, Value | undefined>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  set(key: Key, value: Value): void {
    if (this.#map.get(key) === undefined) this.#size += 1;
    this.#map.set(key, value);
  }

  /** Whether it was there. */
  delete(key: Key): boolean {
    if (this.#map.get(key) === undefined) return false;
    this.#map.set(key, undefined);
    this.#size -= 1;
    if (this.#map.size > 2 * this.#size + FEW) this.#map = new Map(this.entries());
    return true;
  }

  *entries(): Iterable<[Key, Value]> {
    for (const [key, value] of this.#map) if (value !== undefined) yield [key, value];
  }

  *values(): Iterable<Value> {
    for (const value of this.#map.values()) if (value !== undefined) yield value;
  }
}
