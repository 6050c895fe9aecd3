import type { Clock } from "../base/clock";
import type { InFlight } from "../commands/in-flight";
import { inRoot } from "../base/root-context";
import { withCooldownLeft } from "../stores/cooldown";
import type { ReleaseRequest, Store } from "../stores/port";

/** The first and the longest pause before the next attempt, if the store did not reply. */
const PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Releases holds that the store may still have for this process, and that nobody here wants. Retries each release until the store replies,
 * or until the hold has expired.
 */
export class ReleaseRetries {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #underWay = new Set<Promise<void>>();
  /** Callbacks that end the current pauses early. */
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
   * Releases a hold. No caller relies on this `requestId`, now or later.
   *
   * @param timeoutMs how long the key may hold it, counted from now
   * @param onReply called when the store has replied
   */
  release(request: ReleaseRequest, timeoutMs: number, onReply: () => void = () => {}): void {
    const now = this.#clock.now();
    const closedUntil = now + (request.cooldownMs ?? 0);
    this.#add(async () => {
      const hasReplied = await this.#retry(
        () =>
          this.#inFlight.ask((commandMs) =>
            this.#store.release(withCooldownLeft(request, closedUntil - this.#clock.now()), commandMs),
          ),
        now + timeoutMs,
      );
      if (hasReplied) onReply();
    });
  }

  /** Removes a ticket from the store queue. If the command is lost, the ticket expires by itself. */
  dequeue(key: string, ticket: string): void {
    const { queue } = this.#store;
    if (queue === undefined) return;
    this.#add(() => this.#inFlight.ask((timeoutMs) => queue.dequeue(key, ticket, timeoutMs)));
  }

  /** Retries without longer pauses. Resolves when no release is left, because each is answered or its hold has expired. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    for (const end of this.#pauses) end();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Stops all retries, because nobody needs their replies anymore. */
  stop(): void {
    this.#isStopped = true;
    for (const end of this.#pauses) end();
  }

  #add(task: () => Promise<void>): void {
    const done = inRoot(task)
      .catch(() => {}) // Nobody waits for the result. A hold that is not released expires.
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Retries until the store replies, or until that time. Returns whether the store replied. */
  async #retry(send: () => Promise<unknown>, until: number): Promise<boolean> {
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        await send();
        return true;
      } catch {
        // Retries even after a permanent error, because somebody may restore the permission to release.
        if (this.#clock.now() + pauseMs >= until) return false;
      }
      if (this.#isStopped) return false;
      await this.#pause(this.#isFinishing ? PAUSE_MS : pauseMs);
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
