import { afterIo, type Clock, type Timer } from "../../base/clock";

/** A connection counts as silent if no byte arrives for this long while commands have no reply. */
export const SILENT_MS = 3_000;

/**
 * Detects that a connection is silent: two commands have timed out, and no byte has arrived for 3 s. Only another connection can show
 * whether the route is dead or the server is slow.
 */
export class Silence {
  readonly #clock: Clock;
  readonly #bytesRead: () => number | undefined;
  readonly #onSilent: (isStillSilent: () => boolean) => void;
  readonly #timer: Timer;
  #isArmed = false;
  /** The number of commands that have no reply yet. */
  #unanswered = 0;
  /** The time at which the first two commands without a reply have timed out. A reply starts the count again. */
  #firstDueAt: number | undefined;
  #secondDueAt: number | undefined;
  #lastDueAt = 0;
  /** The time since which no byte has arrived, and the number of bytes that had arrived by then. */
  #since = 0;
  #bytes: number | undefined;
  /** Counts replies and new connections. */
  #signsOfLife = 0;

  /**
   * @param bytesRead returns how many bytes have arrived so far, if the client shows that
   * @param onSilent called about every 3 s until a byte arrives. `isStillSilent` returns whether nothing has arrived since that call
   */
  constructor(
    clock: Clock,
    bytesRead: () => number | undefined,
    onSilent: (isStillSilent: () => boolean) => void,
  ) {
    this.#clock = clock;
    this.#bytesRead = bytesRead;
    this.#onSilent = onSilent;
    this.#timer = clock.timerInBackground(() => afterIo(clock, () => this.#check()));
  }

  /** Records that a command was sent, whose reply is due within `timeoutMs`. */
  sent(timeoutMs: number): void {
    const now = this.#clock.now();
    this.#lastDueAt = now + timeoutMs;
    this.#unanswered += 1;
    if (this.#firstDueAt === undefined) {
      this.#firstDueAt = this.#lastDueAt;
      this.#begin(now);
    } else if (this.#secondDueAt === undefined) {
      this.#secondDueAt = this.#lastDueAt;
      this.#arm();
    }
  }

  /** Records that a reply arrived. */
  heard(): void {
    this.#signsOfLife += 1;
    if (this.#unanswered > 0) this.#unanswered -= 1;
    this.#secondDueAt = undefined;
    this.#firstDueAt = this.#unanswered > 0 ? this.#lastDueAt : undefined;
    if (this.#unanswered > 0) this.#begin(this.#clock.now());
  }

  /** Forgets all commands, because the connection was closed or replaced. */
  reset(): void {
    this.#signsOfLife += 1;
    this.#unanswered = 0;
    this.#firstDueAt = undefined;
    this.#secondDueAt = undefined;
  }

  stop(): void {
    this.reset();
    this.#timer.clear();
  }

  #begin(now: number): void {
    this.#since = now;
    this.#bytes = this.#bytesRead();
  }

  #arm(): void {
    if (this.#isArmed || this.#secondDueAt === undefined) return;
    this.#isArmed = true;
    this.#timer.set(Math.max(this.#secondDueAt, this.#since + SILENT_MS));
  }

  #check(): void {
    this.#isArmed = false;
    if (this.#secondDueAt === undefined) return; // A reply arrived in the meantime.
    const now = this.#clock.now();
    if (this.#bytesRead() !== this.#bytes) this.#begin(now);
    else if (now >= Math.max(this.#secondDueAt, this.#since + SILENT_MS)) {
      this.#since = now;
      this.#onSilent(this.#nothingSince());
    }
    this.#arm();
  }

  #nothingSince(): () => boolean {
    const [bytes, signsOfLife] = [this.#bytes, this.#signsOfLife];
    return () => this.#bytesRead() === bytes && this.#signsOfLife === signsOfLife;
  }
}
