import { inRoot, runInNextTick, runInPromiseJob } from "./root-context";

/**
 * Collects the items of one turn of the event loop, and passes them on together. A batch serves several callers, so it passes them on in
 * the root context. It has no deadline: each item has its own.
 */
export class TickBatch<Item> {
  readonly #send: (items: readonly Item[]) => void;
  #items: Item[] = NONE;

  /** @param send never gets an empty list */
  constructor(send: (items: readonly Item[]) => void) {
    this.#send = send;
  }

  /**
   * Adds an item. Returns the number of items that the batch has then.
   *
   * @param isAtOnce whether the next promise job sends the batch. That is late enough for items that one piece of code adds together. By default, the
   * next tick sends it. It runs after all pending promise jobs, so callers that one reply woke share a batch
   */
  add(item: Item, isAtOnce = false): number {
    if (this.#items.length > 0) return this.#items.push(item);
    this.#items = [item]; // A push to an empty list would reserve room for 16 more, and most lists have one item.
    if (isAtOnce) runInPromiseJob(this.#flush);
    else runInNextTick(this.#flush);
    return 1;
  }

  /** Removes an item that was not sent yet. Returns whether it did. */
  remove(item: Item): boolean {
    const index = this.#items.indexOf(item);
    if (index < 0) return false;
    this.#items.splice(index, 1);
    return true;
  }

  /** Sends the items now. */
  flush(): void {
    inRoot(this.#flush);
  }

  readonly #flush = (): void => {
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = NONE;
    this.#send(items);
  };
}

/** An empty list, which is never changed. */
const NONE: never[] = [];

/** Splits a list into parts of at most `size` items. */
export function partsOf<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  if (items.length <= size) return [items];
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
