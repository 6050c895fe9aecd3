import { AsyncResource } from "node:async_hooks";

// Some of our timers, ticks, and event handlers serve several callers. Node runs each of them in the async context of
// the caller that happened to arm it. They must not: an abort listener of one caller would then look like a part of
// another caller's body, and log lines of one request would carry another request's ID. So all of them run in the
// root context, through the functions of this file.

/** The context in which this file was loaded. At that time no lock was held, so it is inside no reentrant body. */
const root = new AsyncResource("lockweave.root");

const COLLECTED = { requireManualDestroy: true } as const;

/** Runs `callback` now, outside of every caller's async context. Promises and timers that it creates also run there. */
export function inRoot<Result>(callback: () => Result): Result {
  return root.runInAsyncScope(newResource).runInAsyncScope(callback);
}

/** Returns a new resource for each run. On Node 20 and 22, `enterWith()` in a callback would otherwise change the root context for good. */
function newResource(): AsyncResource {
  return new AsyncResource("lockweave.root", COLLECTED);
}

/** Returns a function that calls `callback` in the root context, whatever context it is called in. */
export function rooted<Args extends readonly unknown[], Result>(
  callback: (...args: Args) => Result,
): (...args: Args) => Result {
  return (...args) => inRoot(() => callback(...args));
}

interface Emitter<Args extends readonly unknown[]> {
  on(event: string, listener: (...args: Args) => void): unknown;
  off?(event: string, listener: (...args: Args) => void): unknown;
}

/**
 * Listens to an emitter, such as a Redis client, in the root context. The emitter itself emits in the context of the caller that connected
 * it or sent the first command.
 *
 * @param listeners the listeners by event name
 * @returns a function that removes the listeners
 */
export function listenInRoot<Args extends readonly unknown[]>(
  emitter: Emitter<Args>,
  listeners: Readonly<Record<string, NoInfer<(...args: Args) => void>>>,
): () => void {
  const all = Object.entries(listeners).map(([event, listener]) => ({ event, listener: rooted(listener) }));
  for (const { event, listener } of all) emitter.on(event, listener);
  return () => {
    for (const { event, listener } of all) emitter.off?.(event, listener);
  };
}

// A tick and a promise are new resources themselves, so the following functions need no `newResource()`.

/** Runs `callback` after all promise jobs that are due. */
export function runInNextTick(callback: () => void): void {
  root.runInAsyncScope(() => process.nextTick(callback));
}

const NOW = Promise.resolve();

/** Runs `job` as the next promise job. */
export function runInPromiseJob(job: () => void): void {
  root.runInAsyncScope(() => void NOW.then(job));
}
