import { AsyncResource } from "node:async_hooks";
import { setMaxListeners } from "node:events";

/**
 * An `AbortController` whose listeners run in the async context in which it was made, whoever aborts it. Whoever finds
 * that a lock is lost may be at work for another caller.
 */
export class Aborter {
  readonly #controller = new AbortController();
  readonly #context = new AsyncResource("lockweave.signal");

  constructor() {
    allowManyListeners(this.signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#context.runInAsyncScope(() => this.#controller.abort(reason));
  }
}

/** A body may hand its signal to any number of calls. Node warns of a leak from the eleventh listener on. */
function allowManyListeners(signal: AbortSignal): void {
  try {
    setMaxListeners(0, signal);
  } catch {
    // The signal is not Node's own, as in a test environment with a DOM: then there is no limit.
  }
}
