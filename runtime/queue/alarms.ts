import type { CancelTimer, Clock } from "../base/clock";

/** Something that sleeps until an alarm. */
export interface Sleeper {
  onAlarm(): void;
}

interface Alarm {
  readonly sleepers: Set<Sleeper>;
  readonly cancel: CancelTimer;
}

/**
 * Wakes all waiters that sleep until the same millisecond together. Their requests then share a command, and one timer serves all of them.
 */
export class Alarms {
  readonly #clock: Clock;
  readonly #all = new Map<number, Alarm>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param until on the monotonic clock. A duration would be too long if the process were stopped before the timer is set
   * @returns the time of the alarm, for `cancel`
   */
  set(sleeper: Sleeper, until: number): number {
    const at = Math.ceil(until);
    const alarm = this.#all.get(at);
    if (alarm !== undefined) {
      alarm.sleepers.add(sleeper);
    } else {
      const sleepers = new Set([sleeper]);
      const cancel = this.#clock.after(at - this.#clock.now(), () => this.#ring(at, sleepers));
      this.#all.set(at, { sleepers, cancel });
    }
    return at;
  }

  cancel(sleeper: Sleeper, at: number): void {
    const alarm = this.#all.get(at);
    if (alarm?.sleepers.delete(sleeper) !== true || alarm.sleepers.size > 0) return;
    alarm.cancel();
    this.#all.delete(at);
  }

  #ring(at: number, sleepers: Iterable<Sleeper>): void {
    this.#all.delete(at);
    for (const sleeper of sleepers) sleeper.onAlarm();
  }
}
