import type { CancelTimer, Clock, Timer } from "../base/clock";
import type { InFlight } from "../commands/in-flight";
import type { RenewReply, RenewRequest, Store } from "../stores/port";
import type { Certainty } from "../base/certainty";
import { ofReplicas, type Lease } from "./lease";
import { deadlinePassed, HELD_AT_MOST, lossOf, SUSPENDED, type Loss, type Trouble } from "./loss";
import { LEAST_COMMAND_TIME_MS, type WaitTerms } from "./waiter";

/**
 * Renews all leases of the process at a third of their lock time. One timer serves all of them, and leases that are due at about the same
 * time share a command. If the store does not reply, the renewal is retried soon. A lease is lost at its deadline at the latest. `stop` is
 * final, even for a renewal that is in flight. `Lease.renewal` has the state of each lease.
 */
export class Renewals {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #certainty: Certainty;
  readonly #leases: () => Iterable<Lease>;
  readonly #deadlines: Deadlines;
  /** The time for which the store may keep a lease, if a longer time was requested. It counts whether or not the reply arrived. */
  readonly #requestedTimes = new WeakMap<Lease, number>();
  /** The number of leases that are renewed. */
  #keptCount = 0;
  readonly #timer: Timer;
  /** The time at which the timer fires, no later than the time at which the first lease is due. */
  #timerAt = Infinity;

  /** @param leases returns all leases of the process, including those that are not renewed */
  constructor(
    clock: Clock,
    store: Store,
    inFlight: InFlight,
    certainty: Certainty,
    leases: () => Iterable<Lease>,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
    this.#deadlines = new Deadlines(clock);
    this.#certainty = certainty;
    this.#leases = leases;
    this.#timer = clock.timerInBackground(() => this.#renewDue());
  }

  keep(lease: Lease, now: number): void {
    const leftMs = lease.untilDeadline(now);
    if (leftMs === 0) return this.#expire(lease);
    if (lease.isAtItsLimit(now)) return this.#deadlines.watch(lease);
    const thirdMs = lease.lockTimeMs / 3;
    if (leftMs > thirdMs) this.#schedule(lease, now + thirdMs);
    else this.#retry(lease, now); // The reply took so long that a third of the lock time from now would be too late.
  }

  /** Notes that the store may keep the lease for this long after a command, whatever its lock time is. */
  noteLockTime(lease: Lease, ms: number): void {
    if (ms > this.maxLockTimeMs(lease)) this.#requestedTimes.set(lease, ms);
  }

  isKept(lease: Lease): boolean {
    return lease.renewal !== "off";
  }

  /**
   * Gives the lease what one more body inside it needs: a longer lock time, a fencing token, more replicas, or renewals.
   *
   * @param signal once it has aborted, the lease keeps its terms, because another caller may hold it by then
   * @throws the error of the store. If the store does not have the lease, this throws nothing, and the lease is lost
   */
  async strengthen(lease: Lease, wanted: Wanted, signal: AbortSignal | undefined): Promise<void> {
    const lockTimeMs = Math.max(wanted.lockTimeMs, lease.lockTimeMs);
    const fencing = wanted.fencing && lease.fencingToken === undefined;
    const replicas = Math.max(wanted.replicas, lease.replicas);
    if (lockTimeMs > lease.lockTimeMs || fencing || replicas > lease.replicas) {
      await this.prolong(lease, { lockTimeMs, fencing, replicas });
      if (signal?.aborted === true) return;
      lease.lockTimeMs = Math.max(lease.lockTimeMs, lockTimeMs);
      lease.replicas = Math.max(lease.replicas, replicas);
    }
    if (wanted.isWatched && !this.isKept(lease) && !lease.isOver) this.keep(lease, this.#clock.now());
  }

  /**
   * Extends the lease to at least this long from now. If the reply does not prove enough by the time it arrives, sends another command.
   *
   * @param terms with `fencing`, the command draws a new token
   * @param timeoutMs the time that one command may take
   * @throws the error of the store. If the store does not have the lease, this throws nothing, and the lease is lost
   */
  async prolong(lease: Lease, terms: Omit<Wanted, "isWatched">, timeoutMs?: number): Promise<void> {
    const { key, requestId } = lease;
    const { lockTimeMs, fencing, replicas } = terms;
    const sentAt = this.#clock.now();
    this.noteLockTime(lease, lockTimeMs);
    const requestedMs = renewalTimeMs(lease, lockTimeMs, sentAt);
    const sharing = lease.renewTerms;
    const request = {
      key,
      requestId,
      lockTimeMs: requestedMs,
      fencing,
      ...sharing,
      ...ofReplicas({ replicas }),
    };
    const reply = await this.ask(request, timeoutMs);
    if (reply instanceof Error) throw reply;
    const now = this.#clock.now();
    if (!reply.renewed)
      return this.lose(lease, lossOf(requestId, reply.holder, lease.untilDeadline(now) > 0));
    if (lease.isOver) return;
    const trustedSince = this.#certainty.trustedSince();
    if (sentAt < trustedSince || replicas < lease.replicas) {
      return await this.prolong(lease, { ...terms, replicas: Math.max(replicas, lease.replicas) }, timeoutMs);
    }
    lease.prove(sentAt, requestedMs, trustedSince);
    if (reply.fencingToken !== undefined) lease.noteToken(reply.fencingToken);
  }

  /** Sends a renewal of one hold. Never rejects: if the store fails, the reply is its error. */
  async ask(request: RenewRequest, timeoutMs?: number): Promise<RenewReply> {
    const send = (ms: number): Promise<readonly RenewReply[]> => this.#store.renew([request], ms);
    const [reply = NO_REPLY] = await this.#inFlight.askForEach([request], send, timeoutMs);
    return reply;
  }

  /** The longest time for which the store may keep the lease after a command, in milliseconds. */
  maxLockTimeMs(lease: Lease): number {
    return Math.max(lease.lockTimeMs, this.#requestedTimes.get(lease) ?? 0);
  }

  stop(lease: Lease): void {
    this.#deadlines.forget(lease);
    if (lease.renewal === "off") return;
    lease.renewal = "off";
    this.#keptCount -= 1;
    if (this.#keptCount > 0) return;
    this.#timerAt = Infinity;
    this.#timer.clear();
  }

  /** Reports the lease as lost at its deadline, although nobody renews it. */
  watchDeadline(lease: Lease): void {
    if (!this.isKept(lease)) this.#deadlines.watch(lease);
  }

  /** Expires a lease that ended unnoticed: another lease of this process holds its key now. */
  supersede(lease: Lease): void {
    if (!lease.isOver) this.#expire(lease);
  }

  /** Reports to the holder that the lease is lost. */
  lose(lease: Lease, loss: Loss): void {
    this.stop(lease);
    lease.lose(loss);
  }

  /**
   * Handles a suspension of the machine. No lock is certain until the store replies to a renewal. A lease that nobody renews is lost,
   * because it can never be certain again.
   */
  onSuspended(now: number): void {
    for (const lease of Array.from(this.#leases())) {
      if (lease.renewal === "off") this.lose(lease, SUSPENDED);
      else if (lease.renewal === "due") this.#schedule(lease, now);
    }
  }

  #expire(lease: Lease): void {
    this.#deadlines.expire(lease);
    this.stop(lease);
  }

  /** Renews the lease soon, unless its deadline has passed. */
  #retry(lease: Lease, now: number, trouble?: Trouble): void {
    this.#deadlines.watch(lease, trouble);
    if (lease.untilDeadline(now) > 0) this.#schedule(lease, now + lease.lockTimeMs / 30);
    else this.#expire(lease);
  }

  #schedule(lease: Lease, at: number): void {
    if (lease.renewal === "off") this.#keptCount += 1;
    lease.renewal = "due";
    lease.renewAt = Math.ceil(at);
    this.#setTimer(lease.renewAt);
  }

  #setTimer(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    this.#timer.set(at);
  }

  #renewDue(): void {
    this.#timerAt = Infinity;
    this.#certainty.trustedSince(); // If it notices a suspension, all leases are due.
    const now = this.#clock.now();
    const due: Lease[] = [];
    for (const lease of this.#leases()) {
      if (lease.renewal !== "due") continue;
      if (lease.renewAt <= now + this.#toleranceMs(lease)) due.push(lease);
      else this.#setTimer(lease.renewAt);
    }
    const alive = due.filter((lease) => lease.untilDeadline(now) > 0);
    for (const { leases, timeoutMs } of groupForCommands(alive, this.#inFlight.usualTimeoutMs))
      void this.#renew(leases, now, timeoutMs);
    // This comes last, because callbacks that learn of a loss may stop other leases immediately.
    for (const lease of due) {
      if (!lease.isOver && lease.untilDeadline(now) === 0) this.#expire(lease);
    }
  }

  /** The time by which the lease may be renewed early, so that leases that are due at about the same time share a command. A retry is never early. */
  #toleranceMs(lease: Lease): number {
    return this.#deadlines.isWatched(lease) ? 0 : lease.lockTimeMs / 30;
  }

  async #renew(leases: readonly Lease[], sentAt: number, timeoutMs: number): Promise<void> {
    for (const lease of leases) {
      lease.renewal = "sent";
      if (lease.untilDeadline(sentAt) <= this.#inFlight.usualTimeoutMs) this.#deadlines.watch(lease);
    }
    const requests = leases.map((lease) => ({
      key: lease.key,
      requestId: lease.requestId,
      lockTimeMs: renewalTimeMs(lease, lease.lockTimeMs, sentAt),
      fencing: false,
      ...lease.renewTerms,
      ...ofReplicas(lease),
    }));
    const replies = await this.#inFlight.askForEach(
      requests,
      (ms) => this.#store.renew(requests, ms),
      timeoutMs,
    );
    for (const [index, lease] of leases.entries()) {
      const [request, reply] = [requests[index], replies[index]];
      if (request === undefined || reply === undefined || lease.renewal !== "sent") continue;
      const fault = this.#inFlight.handle(() => this.#handleReply(lease, reply, sentAt, request));
      if (fault !== undefined && lease.renewal === "sent") this.#retry(lease, this.#clock.now(), fault);
    }
  }

  #handleReply(lease: Lease, reply: RenewReply, sentAt: number, request: RenewRequest): void {
    const { lockTimeMs, replicas = 0 } = request;
    const trustedSince = this.#certainty.trustedSince();
    const now = this.#clock.now();
    if (reply instanceof Error) return this.#retry(lease, now, { error: reply });
    // A body that entered meanwhile may need more replicas than this command asked for.
    const isDecisive = sentAt >= trustedSince && replicas >= lease.replicas;
    if (!isDecisive) return this.#retry(lease, now);
    if (!reply.renewed) {
      return this.lose(lease, lossOf(lease.requestId, reply.holder, lease.untilDeadline(now) > 0));
    }
    this.stop(lease);
    lease.prove(sentAt, lockTimeMs, trustedSince);
    lease.holder?.onRenewed();
    this.keep(lease, now);
    lease.onRenewed(sentAt, reply);
  }
}

/** Reports a lease as lost exactly at its deadline, if it may not be renewed in time. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #watched = new Map<Lease, { cancel: CancelTimer; trouble: Trouble | undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param trouble why it may not be renewed in time, if that is known */
  watch(lease: Lease, trouble?: Trouble): void {
    const watched = this.#watched.get(lease);
    if (watched === undefined) this.#watched.set(lease, { cancel: this.#startTimer(lease), trouble });
    else if (trouble !== undefined) watched.trouble = trouble;
  }

  isWatched(lease: Lease): boolean {
    return this.#watched.has(lease);
  }

  forget(lease: Lease): void {
    if (this.#watched.size === 0) return;
    this.#watched.get(lease)?.cancel();
    this.#watched.delete(lease);
  }

  /** Reports to the holder that the lease is lost, because its deadline has passed. */
  expire(lease: Lease): void {
    const { trouble } = this.#watched.get(lease) ?? {};
    this.forget(lease);
    lease.lose(lease.isAtItsLimit(this.#clock.now()) ? HELD_AT_MOST : deadlinePassed(trouble));
  }

  #startTimer(lease: Lease): CancelTimer {
    return this.#clock.afterInBackground(lease.untilDeadline(this.#clock.now()), () => {
      const watched = this.#watched.get(lease);
      if (watched === undefined) return;
      if (lease.untilDeadline(this.#clock.now()) > 0) watched.cancel = this.#startTimer(lease);
      else this.expire(lease);
    });
  }
}

/**
 * Groups the leases that may share a command: they have the same timeout and the same number of replicas. An urgent lease, or one that
 * waits for a slow replica, must not cost another caller its lock.
 */
export function groupForCommands<Some extends Lease>(
  leases: Iterable<Some>,
  usualTimeoutMs: number,
): Iterable<{ readonly leases: readonly Some[]; readonly timeoutMs: number }> {
  const groups = new Map<string, { readonly leases: Some[]; readonly timeoutMs: number }>();
  for (const lease of leases) {
    const timeoutMs = renewalTimeoutMs(lease, usualTimeoutMs);
    const name = `${timeoutMs} ${lease.replicas}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { leases: [lease], timeoutMs });
    else group.leases.push(lease);
  }
  return groups.values();
}

/** The time that a renewal of the lease may take. It leaves time for another one, if possible. */
function renewalTimeoutMs({ lockTimeMs }: Lease, usualTimeoutMs: number): number {
  return Math.min(Math.max(lockTimeMs / 3, LEAST_COMMAND_TIME_MS), usualTimeoutMs);
}

const NO_REPLY = new Error("the store sent no reply to a renewal");

/** The terms that a body needs from the lease that it enters. */
export type Wanted = Pick<WaitTerms, "lockTimeMs" | "fencing" | "replicas" | "isWatched">;

/** The lock time that a renewal asks for: in whole milliseconds, as stores count them, and no longer than `holdAtMost` allows. */
function renewalTimeMs(lease: Lease, lockTimeMs: number, now: number): number {
  return Math.min(lockTimeMs, Math.max(Math.ceil(lease.maxHoldTimeLeftMs(now)), 1));
}
