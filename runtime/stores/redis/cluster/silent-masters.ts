import { afterIo, systemClock, type Clock, type Timer } from "../../../base/clock";
import { Backoff } from "../../connection/backoff";
import type { ClusterNode } from "../client-port";

/** A master is silent if it sends no reply for this long while a write waits for one. */
const SILENT_MS = 1_000;

/** The writes to a master that have no reply yet. */
interface Unanswered {
  count: number;
  /** When the first of them was sent, or when the master last replied. */
  since: number;
  isSilent: boolean;
}

/**
 * Notices masters that do not reply, and makes the client ask other nodes for the slots. A master that hangs closes no connection and
 * redirects no command. So nothing else shows that a replica has taken over, and the client would keep the old slots as long as it hangs.
 *
 * All callers share one question. The pause between two questions grows to 3 s while a master stays silent.
 */
export class SilentMasters {
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #backoff: Backoff;
  readonly #ask: (node: ClusterNode) => void;
  readonly #unanswered = new Map<ClusterNode, Unanswered>();
  #isArmed = false;
  #isClosed = false;

  /**
   * @param ask makes the client ask for the slots
   * @param shortestTimeLeftMs returns the shortest time left of all leases and waiters. They cannot wait longer for the new master
   */
  constructor(ask: (node: ClusterNode) => void, shortestTimeLeftMs: () => number, clock = systemClock) {
    this.#clock = clock;
    this.#ask = ask;
    this.#backoff = new Backoff(clock, shortestTimeLeftMs);
    this.#timer = clock.timerInBackground(() => afterIo(clock, () => this.#check()));
  }

  /** Records a write, whose replies are missing until {@link settled}. */
  sent(node: ClusterNode): void {
    const unanswered = this.#unanswered.get(node);
    if (unanswered === undefined) {
      const since = this.#clock.now();
      this.#unanswered.set(node, { count: 1, since, isSilent: false });
      this.#arm(since);
      return;
    }
    unanswered.count += 1;
    if (unanswered.isSilent) this.#askLater();
  }

  /** Records that a write has its replies, or that its connection broke. */
  settled(node: ClusterNode): void {
    const unanswered = this.#unanswered.get(node);
    if (unanswered === undefined) return;
    if (unanswered.isSilent) this.#backoff.connected();
    unanswered.count -= 1;
    unanswered.isSilent = false;
    if (unanswered.count === 0) return void this.#unanswered.delete(node);
    unanswered.since = this.#clock.now();
    this.#arm(unanswered.since);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer.clear();
    this.#backoff.stop();
  }

  #arm(since: number): void {
    if (this.#isArmed || this.#isClosed) return;
    this.#isArmed = true;
    this.#timer.set(since + SILENT_MS);
  }

  #check(): void {
    this.#isArmed = false;
    const now = this.#clock.now();
    let next = Infinity;
    for (const unanswered of this.#unanswered.values()) {
      if (unanswered.isSilent) continue;
      if (now < unanswered.since + SILENT_MS) next = Math.min(next, unanswered.since);
      else {
        unanswered.isSilent = true;
        this.#askLater();
      }
    }
    if (next !== Infinity) this.#arm(next);
  }

  /** Asks about each master that is still silent after the next pause. Later writes to it ask again. */
  #askLater(): void {
    if (this.#isClosed) return;
    this.#backoff.schedule(() => {
      for (const [node, { isSilent }] of this.#unanswered) if (isSilent) this.#ask(node);
    });
  }
}
