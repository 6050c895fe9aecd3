import { VirtualClock } from "./virtual-clock";

/** The clock of a machine that can be suspended. Its monotonic time then stops, as on Linux, and the time since boot goes on. */
export class SuspendableClock extends VirtualClock {
  #suspendedMs = 0;

  sinceBoot(): number {
    return 900_000 + this.now() + this.#suspendedMs;
  }

  suspend(ms: number): void {
    this.#suspendedMs += ms;
  }
}
