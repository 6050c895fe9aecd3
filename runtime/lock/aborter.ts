import { AsyncResource } from "node:async_hooks";
import { setMaxListeners } from "node:events";

/**
 * An `AbortController` whose listeners run in the async context in which it was created. The code that notices a lost lock may run in the
 * context of another caller.
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

/** A body may pass its signal to any number of calls. Node would warn of a leak at the eleventh listener. */
function allowManyListeners(signal: AbortSignal): void {
  try {
    setMaxListeners(0, signal);
  } catch {
    // Test environments with a DOM replace Node's signal. Such a signal has no limit.
  }
}
