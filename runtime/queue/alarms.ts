import type { CancelTimer, Clock } from "../clock";

/** One who sleeps. */
export interface Sleeper {
  onAlarm(): void;
}

interface Alarm {
  readonly sleepers: Set<Sleeper>;
  readonly cancel: CancelTimer;
}

/**
 * Wakes those who sleep until the same millisecond together: what they ask for then goes in one command, and one timer is
 * enough for all of them.
 */
export class Alarms {
  readonly #clock: Clock;
  readonly #all = new Map<number, Alarm>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param until on the monotonic clock: a duration would be counted anew if the process were stopped on the way here
   * @returns when it is woken, for `cancel`
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
