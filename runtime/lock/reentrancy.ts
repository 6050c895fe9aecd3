import { AsyncLocalStorage } from "node:async_hooks";
import type { CancelTimer } from "../base/clock";

/** The reentrant locks around the running code, innermost first. */
interface Frame {
  readonly lock: object;
  readonly outer: Frame | undefined;
}

const frames = new AsyncLocalStorage<Frame>();

/**
 * Runs the body of reentrant locks, which are listed from the outermost, in its own async context. The context must not outlive the call.
 * `enterWith` would leak into the caller, and a sibling that runs beside this body would count as a part of it.
 */
export function runInside<T>(locks: readonly object[], body: () => T): T {
  let frame = frames.getStore();
  for (const lock of locks) frame = { lock, outer: frame };
  return frame === undefined ? body() : frames.run(frame, body);
}

/** Returns the innermost lock around the running code that `isWanted` accepts for the lock `by`. */
export function findAround<Lock extends object>(
  isWanted: (lock: object, by: Lock) => lock is Lock,
  by: Lock,
): Lock | undefined {
  for (let frame = frames.getStore(); frame !== undefined; frame = frame.outer) {
    if (isWanted(frame.lock, by)) return frame.lock;
  }
  return undefined;
}

/** A reentrant lock and the locks inside it. It is released when the last of their bodies has left. */
export class Nest<Lock extends object> {
  /** The outermost lock, which holds the key. */
  readonly root: Lock;
  /** How many bodies are inside. */
  #bodies = 1;
  /** The locks inside that have their own `holdAtMost`, each with the function that cancels its timer. */
  #ownEnds: Map<Lock, CancelTimer> | undefined;

  constructor(root: Lock) {
    this.root = root;
  }

  enter(): void {
    this.#bodies += 1;
  }

  /** Returns whether all bodies have left. */
  leave(): boolean {
    return (this.#bodies -= 1) === 0;
  }

  /** Notes the timer for the `holdAtMost` of a lock inside. Cancels its earlier timer. */
  setOwnEnd(inner: Lock, cancel: CancelTimer): void {
    this.#ownEnds?.get(inner)?.();
    (this.#ownEnds ??= new Map()).set(inner, cancel);
  }

  hasOwnEnd(inner: Lock): boolean {
    return this.#ownEnds?.has(inner) === true;
  }

  clearOwnEnd(inner: Lock): void {
    this.#ownEnds?.get(inner)?.();
    this.#ownEnds?.delete(inner);
  }

  /** Returns the locks inside that have their own `holdAtMost`. */
  withOwnEnd(): Iterable<Lock> {
    return this.#ownEnds?.keys() ?? [];
  }
}
