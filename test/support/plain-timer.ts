import type { CancelTimer, Clock, Timer } from "../../runtime/clock";

/** A timer on a clock that counts what is pending: nothing is left of it when it is cleared. */
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
