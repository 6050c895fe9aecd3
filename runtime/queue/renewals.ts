import type { Clock, Timer } from "../clock";
import type { InFlight } from "../commands/in-flight";
import { renewMany, renewOne } from "../commands/renew";
import type { RenewReply, RenewRequest, Store } from "../stores/port";
import type { Suspension } from "../suspension";
import type { Deadlines } from "./deadlines";
import { ofReplicas, type Lease } from "./lease";
import { lossOf, SUSPENDED, type Loss, type Trouble } from "./loss";
import type { Waiter } from "./waiter";

/**
 * Renews all leases of the process at a third of their lock time: one timer for all, and those that are due
 * at about the same time in one command. While the store does not answer they are tried again soon; a lease
 * is lost at its deadline at the latest. `stop` is final, also for a renewal that is under way.
 */
export class Renewals {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #deadlines: Deadlines;
  readonly #suspension: Suspension;
  readonly #leases: () => Iterable<Lease>;
  /** Of those that were asked to be longer than they are, heard of or not: for how long the store may have them. */
  readonly #askedForMs = new WeakMap<Lease, number>();
  /** How many of the leases are kept. */
  #kept = 0;
  readonly #timer: Timer;
  /** For when the timer is set: for the first that is due, or one that was stopped. */
  #looksAt = Infinity;

  /** @param leases all that the process has, the kept ones among them */
  constructor(
    clock: Clock,
    store: Store,
    inFlight: InFlight,
    deadlines: Deadlines,
    suspension: Suspension,
    leases: () => Iterable<Lease>,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
    this.#deadlines = deadlines;
    this.#suspension = suspension;
    this.#leases = leases;
    this.#timer = clock.timerInBackground(() => this.#renewDue());
  }

  keep(lease: Lease, now: number): void {
    const leftMs = lease.untilDeadline(now);
    if (leftMs === 0) return this.#expire(lease);
    if (lease.isAtItsLimit(now)) return this.#deadlines.watch(lease);
    const thirdMs = lease.lockTimeMs / 3;
    if (leftMs > thirdMs) this.#schedule(lease, now + thirdMs);
    else this.#trySoon(lease, now); // The reply took so long that a third from now would be too late.
  }

  /** The store may have it for so long from a command on, in milliseconds, whatever its own lock time is. */
  mayLast(lease: Lease, ms: number): void {
    if (ms > this.mostLockTimeMs(lease)) this.#askedForMs.set(lease, ms);
  }

  isKept(lease: Lease): boolean {
    return lease.renewAt !== NEVER;
  }

  /**
   * Makes of a lease what one more body inside it asks for, too: a longer lock time, a fencing token, more replicas, to be
   * kept.
   *
   * @param signal once it has aborted nobody asks for that any more: others may have the lease by then
   * @throws what the store fails with, and nothing when it does not have the lease: then it is lost
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
   * Has the store keep the lease for so long from now at least; asked anew where what was asked proves too little by then.
   *
   * @param terms `fencing`: with a new token
   * @param mostMs the time that the command may take
   * @throws what the store fails with, and nothing when it does not have the lease: then it is lost
   */
  async prolong(lease: Lease, terms: Omit<Wanted, "isWatched">, mostMs?: number): Promise<void> {
    const { key, requestId } = lease;
    const { lockTimeMs, fencing, replicas } = terms;
    const sentAt = this.#clock.now();
    this.mayLast(lease, lockTimeMs);
    const askedMs = askedTimeOf(lease, lockTimeMs, sentAt);
    const sharing = lease.renewTerms;
    const request = { key, requestId, lockTimeMs: askedMs, fencing, ...sharing, ...ofReplicas({ replicas }) };
    const reply = await renewOne(this.#store, this.#inFlight, request, mostMs);
    if (reply instanceof Error) throw reply;
    const now = this.#clock.now();
    if (!reply.renewed)
      return this.lose(lease, lossOf(requestId, reply.holder, lease.untilDeadline(now) > 0));
    if (lease.isOver) return;
    const trustedSince = this.#suspension.trustedSince();
    if (sentAt < trustedSince || replicas < lease.replicas) {
      return await this.prolong(lease, { ...terms, replicas: Math.max(replicas, lease.replicas) }, mostMs);
    }
    lease.prove(sentAt, askedMs, trustedSince);
    if (reply.fencingToken !== undefined) lease.drawnInside(reply.fencingToken);
  }

  /** For how long the store may have it, in milliseconds from a command on. */
  mostLockTimeMs(lease: Lease): number {
    return Math.max(lease.lockTimeMs, this.#askedForMs.get(lease) ?? 0);
  }

  stop(lease: Lease): void {
    this.#deadlines.forget(lease);
    if (lease.renewAt === NEVER) return;
    lease.renewAt = NEVER;
    this.#kept -= 1;
    if (this.#kept > 0) return;
    this.#looksAt = Infinity;
    this.#timer.clear();
  }

  /** Another lease of this process has its key: this process has not seen its end yet. */
  supersede(lease: Lease): void {
    if (!lease.isOver) this.#expire(lease);
  }

  /** The store does not have it: whoever holds it is told. */
  lose(lease: Lease, loss: Loss): void {
    this.stop(lease);
    lease.lose(loss);
  }

  /**
   * The machine was suspended: until the store answers a renewal, no lock is certain. One that nobody renews is lost,
   * because it can never be certain again.
   */
  onSuspended(now: number): void {
    for (const lease of Array.from(this.#leases())) {
      if (lease.renewAt === NEVER) this.lose(lease, SUSPENDED);
      else if (lease.renewAt !== UNDER_WAY) this.#schedule(lease, now);
    }
  }

  #expire(lease: Lease): void {
    this.#deadlines.expire(lease);
    this.stop(lease);
  }

  #trySoon(lease: Lease, now: number, trouble?: Trouble): void {
    this.#deadlines.watch(lease, trouble);
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
    this.#suspension.trustedSince(); // A suspension makes all of them due.
    const now = this.#clock.now();
    const due: Lease[] = [];
    for (const lease of this.#leases()) {
      if (lease.renewAt === NEVER || lease.renewAt === UNDER_WAY) continue;
      if (lease.renewAt <= now + this.#mayBeEarlyMs(lease)) due.push(lease);
      else this.#lookAt(lease.renewAt);
    }
    const alive = due.filter((lease) => lease.untilDeadline(now) > 0);
    for (const { leases, mostMs } of together(alive, (lease) => this.#mostMs(lease)))
      void this.#renew(leases, now, mostMs);
    // Last, because those who are told may stop others at once.
    for (const lease of due) {
      if (!lease.isOver && lease.untilDeadline(now) === 0) this.#expire(lease);
    }
  }

  /** How long a renewal of the lease may take: so long that there is time for another. */
  #mostMs({ lockTimeMs }: Lease): number {
    return Math.min(Math.max(lockTimeMs / 3, LEAST_COMMAND_TIME_MS), this.#inFlight.usualTimeoutMs);
  }

  /** So that those that are due at about the same time go together. What is tried again has its time already. */
  #mayBeEarlyMs(lease: Lease): number {
    return this.#deadlines.isWatched(lease) ? 0 : lease.lockTimeMs / 30;
  }

  async #renew(leases: readonly Lease[], sentAt: number, mostMs: number): Promise<void> {
    for (const lease of leases) {
      lease.renewAt = UNDER_WAY;
      if (lease.untilDeadline(sentAt) <= this.#inFlight.usualTimeoutMs) this.#deadlines.watch(lease);
    }
    const requests = leases.map((lease) => ({
      key: lease.key,
      requestId: lease.requestId,
      lockTimeMs: askedTimeOf(lease, lease.lockTimeMs, sentAt),
      fencing: false,
      ...lease.renewTerms,
      ...ofReplicas(lease),
    }));
    const replies = await renewMany(this.#store, this.#inFlight, requests, mostMs);
    for (const [index, lease] of leases.entries()) {
      const [request, reply] = [requests[index], replies[index]];
      if (request === undefined || reply === undefined || lease.renewAt !== UNDER_WAY) continue;
      const fault = this.#inFlight.handle(() => this.#conclude(lease, reply, sentAt, request));
      if (fault !== undefined && lease.renewAt === UNDER_WAY) this.#trySoon(lease, this.#clock.now(), fault);
    }
  }

  #conclude(lease: Lease, reply: RenewReply, sentAt: number, request: RenewRequest): void {
    const { lockTimeMs, replicas = 0 } = request;
    const trustedSince = this.#suspension.trustedSince();
    const now = this.#clock.now();
    // A body that has entered since may want more replicas to have it than were asked.
    if (reply instanceof Error || sentAt < trustedSince || replicas < lease.replicas) {
      const trouble = reply instanceof Error ? { error: reply } : undefined;
      if (lease.untilDeadline(now) > 0) return this.#trySoon(lease, now, trouble);
      if (trouble !== undefined) this.#deadlines.watch(lease, trouble);
      return this.#expire(lease);
    }
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

/**
 * The leases that may go in one command: those that listen for as long and ask as many replicas. One that is in a hurry,
 * or waits for a slow replica, must not cost another its lock.
 */
export function together<Some extends Lease>(
  leases: Iterable<Some>,
  mostMsOf: (lease: Some) => number,
): Iterable<{ readonly leases: readonly Some[]; readonly mostMs: number }> {
  const groups = new Map<string, { readonly leases: Some[]; readonly mostMs: number }>();
  for (const lease of leases) {
    const mostMs = mostMsOf(lease);
    const name = `${mostMs} ${lease.replicas}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { leases: [lease], mostMs });
    else group.leases.push(lease);
  }
  return groups.values();
}

/** What a body asks of the lease that it enters. */
export type Wanted = Pick<Waiter, "lockTimeMs" | "fencing" | "replicas" | "isWatched">;

/** What a renewal asks for: whole milliseconds, as stores count them, and no more than the holder may have. */
function askedTimeOf(lease: Lease, lockTimeMs: number, now: number): number {
  return Math.min(lockTimeMs, Math.max(Math.ceil(lease.mayBeHeldForMs(now)), 1));
}

/** What one renewal may take even where that leaves no time for another. */
const LEAST_COMMAND_TIME_MS = 200;

/** `renewAt` of a lease that is not kept, and of one whose renewal is on its way. */
const NEVER = 0;
const UNDER_WAY = -1;
