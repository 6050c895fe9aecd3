import type { CancelTimer, Clock, Timer } from "../../runtime/base/clock";

/** A timer on a clock that counts pending timers. A cleared timer is not pending. */
export class PlainTimer implements Timer {
  readonly #clock: Pick<Clock, "now" | "after">;
  readonly #callback: () => void;
  #cancel: CancelTimer = () => {};

  constructor(clock: Pick<Clock, "now" | "after">, callback: () => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  set(at: number): void {
    this.#cancel();
    this.#cancel = this.#clock.after(at - this.#clock.now(), this.#callback);
  }

  clear(): void {
    this.#cancel();
  }
}
