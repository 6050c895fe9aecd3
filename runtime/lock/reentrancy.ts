import { AsyncLocalStorage } from "node:async_hooks";

/** A lock that may be around running code. */
export interface FramedLock {
  readonly isHeld: boolean;
  /**
   * Whether all code of its body runs inside its frame. It is false for a generator, which has no frame, and for a lock that was acquired
   * before {@link trackBodies}.
   */
  isBodyKnown: boolean;
}

/** The locks around the running code whose bodies have a frame, innermost first. */
interface Frame {
  readonly lock: FramedLock;
  readonly outer: Frame | undefined;
}

const frames = new AsyncLocalStorage<Frame | undefined>();

let areTracked = false;

/**
 * Gives a frame to every body from now on. Otherwise only the bodies of reentrant locks have one, because on Node 20 and 22 the first frame
 * slows down all promises of the process.
 */
export function trackBodies(): void {
  if (areTracked) return;
  areTracked = true;
  // From now on, Node 20 and 22 note the context of each new promise. They begin only when a new context is entered, so this enters one.
  frames.run({ lock: { isHeld: false, isBodyKnown: true }, outer: undefined }, () => {});
}

export function areBodiesTracked(): boolean {
  return areTracked;
}

/**
 * Runs the body of locks, which are listed from the outermost, in its own async context. The context must not outlive the call. Before the
 * first `await`, `enterWith` would leak into the caller, and a sibling that runs concurrently would count as a part of this body.
 */
export function runInside<T, Given extends readonly unknown[]>(
  locks: readonly FramedLock[],
  body: (...given: Given) => T,
  ...given: Given
): T {
  const frame = frameInside(locks);
  return frame === undefined ? body(...given) : frames.run(frame, body, ...given);
}

/**
 * Begins the body of locks in the running async function. Its caller must have awaited a promise that was made after {@link trackBodies}.
 * What runs after such an `await` has an async context of its own, so the frame ends with the function.
 */
export function beginInside(locks: readonly FramedLock[]): void {
  frames.enterWith(frameInside(locks));
}

function frameInside(locks: readonly FramedLock[]): Frame | undefined {
  let frame = frames.getStore();
  // Without this, a job that schedules its next run in its own body would make the chain longer with each run.
  while (frame !== undefined && !frame.lock.isHeld) frame = frame.outer;
  for (const lock of locks) {
    lock.isBodyKnown = true;
    frame = { lock, outer: frame };
  }
  return frame;
}

/** Whether the running code is inside the body of any lock that has a frame. */
export function isInsideBody(): boolean {
  return frames.getStore() !== undefined;
}

/** Returns the innermost lock around the running code that `isWanted` accepts for `by`. */
export function findAround<Lock extends object, By>(
  isWanted: (lock: object, by: By) => lock is Lock,
  by: By,
): Lock | undefined {
  for (let frame = frames.getStore(); frame !== undefined; frame = frame.outer) {
    const { lock }: { readonly lock: object } = frame;
    if (isWanted(lock, by)) return lock;
  }
  return undefined;
}
