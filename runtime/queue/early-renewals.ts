import type { Clock, Timer } from "../base/clock";
import type { InFlight } from "../commands/in-flight";
import { partsOf, TickBatch } from "../base/tick-batch";
import { MOST_AT_ONCE, type Store } from "../stores/port";
import { ofReplicas } from "./lease";
import { groupForCommands } from "./renewals";
import type { SharedLease } from "./shared-lease";

/** How long the first caller that leaves a shared hold waits for the renewal, in milliseconds. Others may leave meanwhile. */
const LONGEST_WAIT_MS = 4;

/** The pause before the next renewal, if the store did not reply about a hold that it may have lost. */
const RETRY_PAUSE_MS = 200;

/**
 * Renews shared holds before their time, for three reasons: to learn whether anybody is waiting, to release permits, and to confirm the
 * hold for callers that left it. The renewals of one tick share one command, however many callers they serve.
 */
export class EarlyRenewals {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #timer: Timer;
  readonly #batch = new TickBatch<SharedLease>((leases) => this.#send(leases));
  /** The leases in the batch. */
  readonly #pending = new Set<SharedLease>();
  #soon = new Set<SharedLease>();
  /** Leases that the store may have lost and has not yet confirmed. */
  readonly #inDoubt = new Set<SharedLease>();
  readonly #retryTimer: Timer;

  constructor(clock: Clock, store: Store, inFlight: InFlight) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
    this.#timer = clock.timer(() => {
      for (const lease of this.#soon) this.now(lease);
    });
    this.#retryTimer = clock.timerInBackground(() => {
      for (const lease of this.#inDoubt) this.now(lease);
    });
  }

  /** Checks a lease that the store may have lost, until the store replies. */
  doubt(lease: SharedLease): void {
    this.#inDoubt.add(lease);
    this.now(lease);
  }

  /** Renews the lease in this tick. */
  now(lease: SharedLease): void {
    if (this.#soon.delete(lease) && this.#soon.size === 0) this.#timer.clear();
    if (this.#pending.has(lease)) return;
    this.#pending.add(lease);
    this.#batch.add(lease);
  }

  /** Renews the lease within a few milliseconds. */
  soon(lease: SharedLease): void {
    if (this.#pending.has(lease)) return;
    if (this.#soon.size === 0) this.#timer.set(this.#clock.now() + LONGEST_WAIT_MS);
    this.#soon.add(lease);
  }

  /** Stops the renewals of a lease that has ended. All callers that left it know the outcome. */
  forget(lease: SharedLease): void {
    if (this.#pending.delete(lease)) this.#batch.remove(lease);
    if (this.#inDoubt.delete(lease) && this.#inDoubt.size === 0) this.#retryTimer.clear();
    if (this.#soon.delete(lease) && this.#soon.size === 0) this.#timer.clear();
  }

  #send(pending: readonly SharedLease[]): void {
    this.#pending.clear();
    for (const { leases, timeoutMs } of groupForCommands(pending, this.#inFlight.usualTimeoutMs)) {
      for (const some of partsOf(leases, MOST_AT_ONCE)) void this.#renew(some, timeoutMs);
    }
  }

  async #renew(leases: readonly SharedLease[], timeoutMs: number): Promise<void> {
    for (const lease of leases) lease.queue.beforeEarlyRenewal(lease);
    const sentAt = this.#clock.now();
    const handOffs = leases.map(({ turn }) => turn?.handOffs ?? 0);
    const requests = leases.map((lease) => ({
      key: lease.key,
      requestId: lease.requestId,
      // A hold without a watchdog must not be extended. A renewal never shortens a hold, so 1 ms changes nothing.
      lockTimeMs: lease.members.isJoinable ? lease.lockTimeMs : 1,
      fencing: false,
      ...lease.renewTerms,
      ...ofReplicas(lease),
    }));
    const replies = await this.#inFlight.askForEach(
      requests,
      (ms) => this.#store.renew(requests, ms),
      timeoutMs,
    );
    leases.forEach((lease, index) => {
      const { lockTimeMs, replicas = 0 } = requests[index] ?? lease;
      const reply = replies[index] ?? new Error("the store sent fewer replies than expected");
      if (!(reply instanceof Error)) this.#inDoubt.delete(lease);
      const renewal = { lease, sentAt, lockTimeMs, replicas, handOffs: handOffs[index] ?? 0, reply };
      this.#inFlight.handle(() => lease.queue.onRenewedEarly(renewal));
    });
    if (leases.some((lease) => this.#inDoubt.has(lease)))
      this.#retryTimer.set(this.#clock.now() + RETRY_PAUSE_MS);
  }
}
