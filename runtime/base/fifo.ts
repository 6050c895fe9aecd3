interface Node<Key, Value> {
  readonly key: Key;
  value: Value;
  before: Node<Key, Value> | undefined;
  after: Node<Key, Value> | undefined;
}

/**
 * A map in insertion order that finds its first and its last key in constant time.
 *
 * The iterator of a `Map` walks over deleted entries until the table is rebuilt. In a long queue that is emptied from the front, each
 * search for the first key would walk over all of them again.
 */
export class Fifo<Key, Value = undefined> {
  readonly #nodes = new Map<Key, Node<Key, Value>>();
  #first: Node<Key, Value> | undefined;
  #last: Node<Key, Value> | undefined;

  get first(): Key | undefined {
    return this.#first?.key;
  }

  get last(): Key | undefined {
    return this.#last?.key;
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(key: Key): Value | undefined {
    return this.#nodes.get(key)?.value;
  }

  /** Adds the key at the end. A key that is present keeps its position. */
  set(key: Key, value: Value): void {
    const known = this.#nodes.get(key);
    if (known !== undefined) {
      known.value = value;
      return;
    }
    const node = { key, value, before: this.#last, after: undefined };
    this.#nodes.set(key, node);
    if (this.#last === undefined) this.#first = node;
    else this.#last.after = node;
    this.#last = node;
  }

  /** Returns whether the key was present. */
  delete(key: Key): boolean {
    const node = this.#nodes.get(key);
    if (node === undefined) return false;
    const { before, after } = node;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    return this.#nodes.delete(key);
  }

  clear(): void {
    this.#nodes.clear();
    this.#first = undefined;
    this.#last = undefined;
  }

  *keys(): Iterable<Key> {
    for (let node = this.#first; node !== undefined; node = node.after) yield node.key;
  }

  *values(): Iterable<Value> {
    for (let node = this.#first; node !== undefined; node = node.after) yield node.value;
  }
}
