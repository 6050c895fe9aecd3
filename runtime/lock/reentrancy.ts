import { AsyncLocalStorage } from "node:async_hooks";

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
