import type { Clock } from "../clock";
import type { InFlight } from "../commands/in-flight";
import { inRoot } from "../root-context";
import { closedNoLonger } from "../stores/later-drop";
import type { ReleaseRequest, Store } from "../stores/port";
import { releaseReply } from "../stores/replies";

/** How long to pause before a store that did not answer is asked again: at first, and at most. */
const PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/**
 * What the store may still have for us, and nobody wants: it is dropped again and again until the store answers, or until
 * it has expired by itself.
 */
export class ReleaseRetries {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #underWay = new Set<Promise<void>>();
  /** Those who pause, each to be ended before its time. */
  readonly #pauses = new Set<() => void>();
  #isFinishing = false;
  #isStopped = false;

  constructor(clock: Clock, store: Store, inFlight: InFlight) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /**
   * Nobody believes, or will ever again, to hold the key by this `requestId`.
   *
   * @param timeoutMs how long the key may hold it, counted from now
   * @param onAnswer called once the store has answered
   */
  release(request: ReleaseRequest, timeoutMs: number, onAnswer: () => void = () => {}): void {
    const now = this.#clock.now();
    const closedUntil = now + (request.cooldownMs ?? 0);
    this.#add(async () => {
      const isAnswered = await this.#insist(
        () =>
          this.#inFlight.ask(
            (commandMs) =>
              this.#store.release(closedNoLonger(request, closedUntil - this.#clock.now()), commandMs),
            releaseReply,
          ),
        now + timeoutMs,
      );
      if (isAnswered) onAnswer();
    });
  }

  /** Gives up a place in a queue. Where that is not heard, the place ends by itself. */
  dequeue(key: string, place: string): void {
    this.#add(() => this.#inFlight.tell((timeoutMs) => this.#store.dequeue(key, place, timeoutMs)));
  }

  /** Resolves when everything has been sent once more, and answered or not. What fails from now on is not tried again. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    for (const end of this.#pauses) end();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Nothing is sent again from now on: nobody listens any more. */
  stop(): void {
    this.#isFinishing = true;
    this.#isStopped = true;
    for (const end of this.#pauses) end();
  }

  #add(work: () => Promise<void>): void {
    const done = inRoot(work)
      .catch(() => {}) // Nobody waits for it: what fails expires by itself.
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Whether the store answered. */
  async #insist(send: () => Promise<unknown>, until: number): Promise<boolean> {
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        await send();
        return true;
      } catch {
        // Also after a permanent error: somebody may restore the right to release.
        if (this.#clock.now() + pauseMs >= until) return false;
      }
      if (this.#isFinishing) return false;
      await this.#pause(pauseMs);
      if (this.#isStopped) return false;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#pauses.delete(end);
        resolve();
      };
      const cancel = this.#clock.afterInBackground(ms, end);
      this.#pauses.add(end);
    });
  }
}
