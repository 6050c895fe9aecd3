import { afterIo, type Clock, type Timer } from "../../clock";

/** How often a connection is asked whether it still leads anywhere, while somebody needs it. */
const EVERY_MS = 10_000;

/** Notices that a connection is dead which only listens: nothing is sent on it that could time out. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #ping: () => Promise<unknown> | undefined;
  readonly #onDead: () => void;
  #isArmed = false;
  #isUnanswered = false;
  #neededAt = 0;

  /**
   * @param ping on the connection of now; undefined where there is none
   * @param onDead a ping had no answer by the time of the next one
   */
  constructor(clock: Clock, ping: () => Promise<unknown> | undefined, onDead: () => void) {
    this.#clock = clock;
    this.#ping = ping;
    this.#onDead = onDead;
    this.#timer = clock.timerInBackground(() => afterIo(clock, () => this.#beat()));
  }

  /** Somebody needs the connection. */
  needed(): void {
    this.#neededAt = this.#clock.now();
    if (!this.#isArmed) this.#arm();
  }

  stop(): void {
    this.#timer.clear();
  }

  #arm(): void {
    this.#isArmed = true;
    this.#timer.set(this.#clock.now() + EVERY_MS);
  }

  #beat(): void {
    this.#isArmed = false;
    if (this.#clock.now() - this.#neededAt > EVERY_MS) return void (this.#isUnanswered = false);
    if (this.#isUnanswered) this.#onDead();
    this.#isUnanswered = false;
    const answered = (): void => void (this.#isUnanswered = false);
    const asked = this.#ping();
    this.#isUnanswered = asked !== undefined;
    asked?.then(answered, answered); // A connection that breaks, or a refusal, is an answer.
    this.#arm();
  }
}
