import type { CancelTimer, Clock } from "./clock";
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
  /** By the delay with which they are renewed: so the first of each group is the first that is due. */
  readonly #groups = new Map<number, Set<Lease>>();
  /** Leases that may not be renewed in time must not outlive their deadline, not even by a moment. */
  readonly #dooms = new Map<Lease, CancelTimer>();
  #alarm: { readonly at: number; readonly cancel: CancelTimer } | undefined;

  constructor(clock: Clock, store: Store, commands: Commands, story: Story) {
    this.#clock = clock;
    this.#store = store;
    this.#commands = commands;
    this.#story = story;
  }

  keep(lease: Lease): void {
    const now = this.#clock.now();
    const remainingMs = lease.remaining(now);
    if (remainingMs === 0) return lease.lose(DEADLINE_PASSED);
    const thirdMs = Math.round(lease.lockTimeMs / 3);
    if (remainingMs > thirdMs) return this.#schedule(lease, thirdMs);
    // The reply took so long that a third from now would be too late.
    this.#doom(lease, now);
    this.#schedule(lease, Math.ceil(lease.lockTimeMs / 30));
  }

  stop(lease: Lease): void {
    this.#dooms.get(lease)?.();
    this.#dooms.delete(lease);
    this.#forget(lease);
    if (this.#groups.size === 0) this.#setAlarm(undefined);
  }

  #schedule(lease: Lease, delayMs: number): void {
    lease.renewDelayMs = delayMs;
    lease.renewAt = Math.floor(this.#clock.now()) + delayMs;
    let group = this.#groups.get(delayMs);
    if (group === undefined) this.#groups.set(delayMs, (group = new Set()));
    group.add(lease);
    if (this.#alarm === undefined || lease.renewAt < this.#alarm.at) this.#setAlarm(lease.renewAt);
  }

  #forget(lease: Lease): void {
    const group = this.#groups.get(lease.renewDelayMs);
    group?.delete(lease);
    if (group?.size === 0) this.#groups.delete(lease.renewDelayMs);
    lease.renewDelayMs = 0;
  }

  #setAlarm(at: number | undefined): void {
    this.#alarm?.cancel();
    this.#alarm = at === undefined ? undefined : { at, cancel: this.#wakeAt(at) };
  }

  #wakeAt(at: number): CancelTimer {
    return this.#clock.afterInBackground(Math.max(at - this.#clock.now(), 0), () => {
      this.#alarm = undefined;
      this.#renewDue();
    });
  }

  #renewDue(): void {
    const now = this.#clock.now();
    const due = [...this.#groups].flatMap(([delayMs, group]) => {
      const together: Lease[] = [];
      for (const lease of group) {
        if (lease.renewAt > now + delayMs / 10) break;
        together.push(lease);
      }
      return together;
    });
    for (const lease of due) this.#forget(lease);
    const firsts = [...this.#groups.values()].map(
      (group) => group.values().next().value?.renewAt ?? Infinity,
    );
    if (firsts.length > 0) this.#setAlarm(Math.min(...firsts));
    const alive = due.filter((lease) => lease.remaining(now) > 0);
    if (alive.length > 0) void this.#renew(alive, now);
    // Last, because those who are told may stop others at once.
    for (const lease of due) if (lease.remaining(now) === 0) lease.lose(DEADLINE_PASSED);
  }

  async #renew(leases: readonly Lease[], sentAt: number): Promise<void> {
    for (const lease of leases) {
      lease.renewDelayMs = UNDER_WAY;
      if (lease.remaining(sentAt) <= this.#commands.usualTimeoutMs) this.#doom(lease, sentAt);
    }
    let replies: readonly RenewReply[] = [];
    try {
      replies = await this.#commands.ask(() => this.#store.renew(leases));
    } catch {
      // Without a reply each is tried again.
    }
    leases.forEach((lease, index) => {
      const isStopped = lease.renewDelayMs !== UNDER_WAY;
      if (!isStopped) this.#conclude(lease, replies[index] ?? "unknown", sentAt);
    });
  }

  #conclude(lease: Lease, reply: RenewReply, sentAt: number): void {
    const now = this.#clock.now();
    if (reply === "unknown" && lease.remaining(now) > 0) {
      this.#doom(lease, now);
      return this.#schedule(lease, Math.ceil(lease.lockTimeMs / 30));
    }
    this.#dooms.get(lease)?.();
    this.#dooms.delete(lease);
    lease.renewDelayMs = 0;
    if (reply === "renewed") {
      lease.prolong(sentAt);
      if (lease.holder !== undefined) this.#story.renewed(lease.holder);
      this.keep(lease);
    } else {
      lease.lose(REASONS[reply]);
    }
  }

  #doom(lease: Lease, now: number): void {
    if (this.#dooms.has(lease)) return;
    const cancel = this.#clock.afterInBackground(lease.remaining(now), () => {
      this.stop(lease);
      lease.lose(DEADLINE_PASSED);
    });
    this.#dooms.set(lease, cancel);
  }
}

/** Stands for the delay while a renewal is on its way. */
const UNDER_WAY = -1;

const DEADLINE_PASSED = "its deadline passed before a renewal succeeded";
const REASONS = { stolen: "somebody else holds it", expired: "its key expired", unknown: DEADLINE_PASSED };
