import { afterIo, type Clock, type Timer } from "../../base/clock";

/** The time between two pings of a connection, while somebody needs it. */
const PING_INTERVAL_MS = 10_000;

/** Pings a connection that only listens, to detect that it is dead. No command is sent on it that could time out. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #ping: () => Promise<unknown> | undefined;
  readonly #onDead: () => void;
  #isArmed = false;
  #isUnanswered = false;
  #neededAt = 0;
  #isStopped = false;

  /**
   * @param ping pings the current connection, or returns undefined if there is none
   * @param onDead called when a ping has no answer by the time of the next one
   */
  constructor(clock: Clock, ping: () => Promise<unknown> | undefined, onDead: () => void) {
    this.#clock = clock;
    this.#ping = ping;
    this.#onDead = onDead;
    this.#timer = clock.timerInBackground(() => afterIo(clock, () => this.#tick()));
  }

  /** Records that somebody needs the connection now. */
  needed(): void {
    this.#neededAt = this.#clock.now();
    if (!this.#isArmed) this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer.clear();
  }

  #arm(): void {
    this.#isArmed = true;
    this.#timer.set(this.#clock.now() + PING_INTERVAL_MS);
  }

  #tick(): void {
    this.#isArmed = false;
    if (this.#isStopped) return; // Between the timer and this call.
    if (this.#clock.now() - this.#neededAt > PING_INTERVAL_MS) return void (this.#isUnanswered = false);
    if (this.#isUnanswered) this.#onDead();
    this.#isUnanswered = false;
    const answered = (): void => void (this.#isUnanswered = false);
    const reply = this.#ping();
    this.#isUnanswered = reply !== undefined;
    // A rejection is also an answer: the server refused the ping, or the connection is known to have broken.
    reply?.then(answered, answered);
    this.#arm();
  }
}
