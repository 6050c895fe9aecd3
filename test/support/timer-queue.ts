import { AsyncResource } from "node:async_hooks";

export interface Timer {
  readonly dueAt: number;
  /** Of two timers that are due at the same time, the one that was set first runs first. */
  readonly order: number;
  readonly callback: () => void;
  isCanceled: boolean;
}

/** A binary heap of timers by due time. Canceled timers are removed lazily. */
export class TimerQueue {
  readonly #heap: Timer[] = [];
  #order = 0;
  #size = 0;

  /** The number of timers that are neither taken nor canceled. */
  get size(): number {
    return this.#size;
  }

  /** Adds a timer. Its callback runs in the async context of this call, like a timer of Node. */
  add(dueAt: number, callback: () => void): Timer {
    const timer: Timer = {
      dueAt,
      order: (this.#order += 1),
      callback: AsyncResource.bind(callback),
      isCanceled: false,
    };
    this.#size += 1;
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1, timer);
    return timer;
  }

  /** Cancels a timer that was not taken yet. */
  cancel(timer: Timer): void {
    if (timer.isCanceled) return;
    timer.isCanceled = true;
    this.#size -= 1;
  }

  /** Takes the first timer that is due at `end` or before. */
  take(end: number): Timer | undefined {
    for (let first = this.#heap[0]; first !== undefined && first.dueAt <= end; first = this.#heap[0]) {
      this.#dropFirst();
      if (first.isCanceled) continue;
      first.isCanceled = true;
      this.#size -= 1;
      return first;
    }
    return undefined;
  }

  #dropFirst(): void {
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) this.#sink(last);
  }

  #rise(from: number, timer: Timer): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const other = this.#heap[above];
      if (other === undefined || isBefore(other, timer)) break;
      this.#heap[at] = other;
      at = above;
    }
    this.#heap[at] = timer;
  }

  #sink(timer: Timer): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      let next = heap[below];
      const right = heap[below + 1];
      if (next !== undefined && right !== undefined && isBefore(right, next)) {
        below += 1;
        next = right;
      }
      if (next === undefined || isBefore(timer, next)) break;
      heap[at] = next;
      at = below;
    }
    heap[at] = timer;
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.order < other.order);
}
