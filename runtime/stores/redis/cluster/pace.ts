import { systemClock, type CancelTimer } from "../../../base/clock";
import { inRoot } from "../../../base/root-context";

/** Runs a task immediately, and then at most once in each pause. Requests during a pause share the run at its end. */
export class Pace {
  readonly #pauseMs: number;
  readonly #task: () => void;
  /** Cancels the pause after the last run. Undefined if there is no pause. */
  #endPause: CancelTimer | undefined;
  #isRequested = false;
  #isStopped = false;

  constructor(pauseMs: number, task: () => void) {
    this.#pauseMs = pauseMs;
    this.#task = task;
  }

  request(): void {
    if (this.#isStopped) return;
    this.#isRequested = this.#endPause !== undefined;
    if (this.#isRequested) return;
    this.#endPause = systemClock.afterInBackground(this.#pauseMs, () => {
      this.#endPause = undefined;
      if (this.#isRequested) this.request();
    });
    inRoot(this.#task);
  }

  /** Ends the pause. Later requests do nothing. */
  stop(): void {
    this.#isStopped = true;
    this.#endPause?.();
  }
}
