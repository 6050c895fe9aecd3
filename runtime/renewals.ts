import type { CancelTimer, Clock, Timer } from "./clock";
import type { Commands } from "./commands";
import type { Lease } from "./lease";
import type { RenewReply, Store } from "./store";
import type { Story } from "./story";

/**
 * Renews all leases of the process at a third of their lock time: one timer for all, and those that are due
 * at about the same time in one command. While the store does not answer they are tried again soon; a lease
 * is lost at its deadline at the latest. `stop` is final, also for a renewal that is under way.
 */
export class Renewals {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #commands: Commands;
  readonly #story: Story;
  readonly #leases: () => Iterable<Lease>;
  /** How many of the leases are kept. */
  #kept = 0;
  readonly #timer: Timer;
  /** For when the timer is set: for the first that is due, or one that was stopped. */
  #looksAt = Infinity;
  /** Leases that may not be renewed in time must not outlive their deadline, not even by a moment. */
  readonly #dooms = new Map<Lease, CancelTimer>();

  /** @param leases all that the process has, the kept ones among them */
  constructor(clock: Clock, store: Store, commands: Commands, story: Story, leases: () => Iterable<Lease>) {
    this.#clock = clock;
    this.#store = store;
    this.#commands = commands;
    this.#story = story;
    this.#leases = leases;
    this.#timer = clock.timerInBackground(() => this.#renewDue());
  }

  keep(lease: Lease, now: number): void {
    const remainingMs = lease.remaining(now);
    if (remainingMs === 0) return this.expire(lease);
    const thirdMs = lease.lockTimeMs / 3;
    if (remainingMs > thirdMs) this.#schedule(lease, now + thirdMs);
    else this.#trySoon(lease, now); // The reply took so long that a third from now would be too late.
  }

  stop(lease: Lease): void {
    if (lease.renewAt === NEVER) return;
    this.#dooms.get(lease)?.();
    this.#dooms.delete(lease);
    lease.renewAt = NEVER;
    this.#kept -= 1;
    if (this.#kept > 0) return;
    this.#looksAt = Infinity;
    this.#timer.clear();
  }

  /** Its deadline has passed: whoever holds it is told. */
  expire(lease: Lease): void {
    this.stop(lease);
    lease.lose(DEADLINE_PASSED);
  }

  /** Somebody else was granted its key. If it is still kept, this process stood still and has not seen its end. */
  supersede(lease: Lease): void {
    if (lease.renewAt !== NEVER) this.expire(lease);
  }

  #trySoon(lease: Lease, now: number): void {
    this.#doom(lease, now);
    this.#schedule(lease, now + lease.lockTimeMs / 30);
  }

  #schedule(lease: Lease, at: number): void {
    if (lease.renewAt === NEVER) this.#kept += 1;
    lease.renewAt = Math.ceil(at);
    this.#lookAt(lease.renewAt);
  }

  #lookAt(at: number): void {
    if (at >= this.#looksAt) return;
    this.#looksAt = at;
    this.#timer.set(at);
  }

  #renewDue(): void {
    this.#looksAt = Infinity;
    const now = this.#clock.now();
    const due: Lease[] = [];
    for (const lease of this.#leases()) {
      if (lease.renewAt === NEVER || lease.renewAt === UNDER_WAY) continue;
      if (lease.renewAt <= now + this.#mayBeEarlyMs(lease)) due.push(lease);
      else this.#lookAt(lease.renewAt);
    }
    const alive = due.filter((lease) => lease.remaining(now) > 0);
    if (alive.length > 0) void this.#renew(alive, now);
    // Last, because those who are told may stop others at once.
    for (const lease of due) {
      if (lease.remaining(now) === 0) this.expire(lease);
    }
  }

  /** So that those that are due at about the same time go together. What is tried again has its time already. */
  #mayBeEarlyMs(lease: Lease): number {
    return this.#dooms.has(lease) ? 0 : lease.lockTimeMs / 30;
  }

  async #renew(leases: readonly Lease[], sentAt: number): Promise<void> {
    for (const lease of leases) {
      lease.renewAt = UNDER_WAY;
      if (lease.remaining(sentAt) <= this.#commands.usualTimeoutMs) this.#doom(lease, sentAt);
    }
    let replies: readonly RenewReply[] = [];
    try {
      replies = await this.#commands.ask(() => this.#store.renew(leases));
    } catch {
      // Without a reply each is tried again.
    }
    leases.forEach((lease, index) => {
      if (lease.renewAt === UNDER_WAY) this.#conclude(lease, replies[index] ?? "unknown", sentAt);
    });
  }

  #conclude(lease: Lease, reply: RenewReply, sentAt: number): void {
    const now = this.#clock.now();
    if (reply === "unknown" && lease.remaining(now) > 0) return this.#trySoon(lease, now);
    this.stop(lease);
    if (reply === "renewed") {
      lease.prolong(sentAt);
      if (lease.holder !== undefined) this.#story.renewed(lease.holder);
      this.keep(lease, now);
    } else {
      lease.lose(REASONS[reply]);
    }
  }

  #doom(lease: Lease, now: number): void {
    if (this.#dooms.has(lease)) return;
    const cancel = this.#clock.afterInBackground(lease.remaining(now), () => this.expire(lease));
    this.#dooms.set(lease, cancel);
  }
}

/** `renewAt` of a lease that is not kept, and of one whose renewal is on its way. */
const NEVER = 0;
const UNDER_WAY = -1;

const DEADLINE_PASSED = "its deadline passed before a renewal succeeded";
const REASONS = { stolen: "somebody else holds it", expired: "its key expired", unknown: DEADLINE_PASSED };
