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

  /** @returns when it is woken, for `cancel` */
  set(sleeper: Sleeper, ms: number): number {
    const now = this.#clock.now();
    const at = Math.ceil(now + ms);
    const alarm = this.#all.get(at);
    if (alarm !== undefined) {
      alarm.sleepers.add(sleeper);
    } else {
      const sleepers = new Set([sleeper]);
      this.#all.set(at, { sleepers, cancel: this.#clock.after(at - now, () => this.#ring(at, sleepers)) });
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
