import { afterIo, type Clock, type Timer } from "../../clock";

/** So long nothing has come while commands were unanswered. */
const SILENT_MS = 3_000;

/**
 * Notices that a connection is silent: two commands have timed out, and not a byte has come for 3 s. Whether the route is
 * dead or the server is slow, only another connection can tell.
 */
export class Silence {
  readonly #clock: Clock;
  readonly #bytesRead: () => number | undefined;
  readonly #onSilent: (isStillSilent: () => boolean) => void;
  readonly #timer: Timer;
  #isArmed = false;
  /** How many commands have no reply yet. */
  #unanswered = 0;
  /** When the first two time out of those that were sent since the last byte. */
  #firstDueAt: number | undefined;
  #secondDueAt: number | undefined;
  #lastDueAt = 0;
  /** Since when an answer is due, and how many bytes had come by then. */
  #since = 0;
  #bytes: number | undefined;
  /** Counts replies, and connections. */
  #signsOfLife = 0;

  /**
   * @param bytesRead how many bytes have come so far, if the client tells
   * @param onSilent called again and again, about once in 3 s, until a byte comes. `isStillSilent` tells whether nothing has
   *   come since that call, also when other commands are unanswered by then.
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

  /** A command was sent, whose reply is waited for so long. */
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

  /** A reply came. */
  heard(): void {
    this.#signsOfLife += 1;
    if (this.#unanswered > 0) this.#unanswered -= 1;
    this.#secondDueAt = undefined;
    this.#firstDueAt = this.#unanswered > 0 ? this.#lastDueAt : undefined;
    if (this.#unanswered > 0) this.#begin(this.#clock.now());
  }

  /** The connection is another one, or none. */
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
    if (this.#secondDueAt === undefined) return; // It was answered since.
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

/** How many bytes the connection of an ioredis client has read; undefined where that cannot be seen. */
export function bytesReadBy(client: object): number | undefined {
  const { stream } = client as { readonly stream?: { readonly bytesRead?: number } | null };
  return stream?.bytesRead;
}
