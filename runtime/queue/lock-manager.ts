import type { CancelTimer, Clock } from "../clock";
import type { AcquireCommand } from "../commands/acquire";
import type { ReleaseCommand } from "../commands/release";
import { Batch, InFlight } from "../commands/in-flight";
import { LockOptionError, errorMessage } from "../errors";
import { RESERVED_NAMESPACE } from "../limits";
import { inRoot, rooted } from "../root-context";
import { RecyclingMap } from "../recycling-map";
import { formatValue } from "../format-value";
import {
  MOST_AT_ONCE,
  type ReleaseReply,
  type EnqueueRequest,
  type Store,
  type AcquireReply,
} from "../stores/port";
import { Suspension } from "../suspension";
import { Alarms } from "./alarms";
import { Contended } from "./contended";
import { Deadlines } from "./deadlines";
import { ReleaseRetries } from "./release-retries";
import type { Holder } from "./holder";
import type { Lease } from "./lease";
import { LeaseVerifier } from "./lease-verifier";
import type { Loss } from "./loss";
import { LocalQueue } from "./local-queue";
import { Refreshes } from "./refreshes";
import { Renewals, type Wanted } from "./renewals";
import type { Listening, QueueContext } from "./queue-context";
import { SharedLease } from "./shared-lease";
import { SharedQueue } from "./shared-queue";
import type { Ended } from "./hand-off-turn";
import type { Waiter } from "./waiter";

/**
 * Who in this process waits for keys and who holds them. A release hands the lock on: to the next in line here, and now and
 * then, so that no process starves, through the store's queue to another process.
 */
export class LockManager implements QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly inFlight: InFlight;
  /** For those who wait. */
  readonly alarms: Alarms;
  readonly acquires: Batch<AcquireCommand, AcquireReply>;
  readonly enqueues: Batch<AcquireCommand, AcquireReply>;
  readonly releases: Batch<ReleaseCommand<unknown>, ReleaseReply>;
  readonly deadlines: Deadlines;
  readonly contended = new Contended();
  readonly renewals: Renewals;
  readonly verifier: LeaseVerifier;
  readonly releaseRetries: ReleaseRetries;
  readonly suspension: Suspension;
  readonly refreshes: Refreshes;
  readonly newRequestId: () => string;
  /** Whether no lock is given any more. */
  isClosed = false;
  readonly #queues = new RecyclingMap<string, LocalQueue | SharedQueue>();
  /** Those who have a place in a queue of the store. */
  readonly #listening = new RecyclingMap<string, Listening>();
  readonly #deafen: () => void;
  /** How many leases have not ended. */
  #stays = 0;
  /** How many callers are after several keys together. Between two tries they may stand in no queue. */
  #severalAtOnce = 0;
  /** Called when a hold has ended, or a queue, or what a caller with several keys is after. */
  #onChange = (): void => {};

  /** @param onWarning told what the store says that somebody should look at */
  constructor(
    clock: Clock,
    store: Store,
    commandTimeoutMs: number,
    newRequestId: () => string,
    onWarning: (message: string) => void,
  ) {
    this.clock = clock;
    this.newRequestId = newRequestId;
    this.store = store;
    this.inFlight = new InFlight(clock, commandTimeoutMs, (error) =>
      onWarning(`a reply of the store could not be handled: ${errorMessage(error)}`),
    );
    const { acquireMany, enqueueMany, releaseMany, splitsMany } = store;
    const mostAtOnce = splitsMany === true ? Infinity : MOST_AT_ONCE;
    this.acquires = new Batch(
      this.inFlight,
      acquireMany && ((attempts, timeoutMs) => acquireMany.call(store, attempts.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    this.releases = new Batch(
      this.inFlight,
      releaseMany && ((drops, timeoutMs) => releaseMany.call(store, drops.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    this.enqueues = new Batch(
      this.inFlight,
      enqueueMany &&
        ((attempts, timeoutMs) => enqueueMany.call(store, attempts.flatMap(placeRequestOf), timeoutMs)),
    );
    this.alarms = new Alarms(clock);
    this.deadlines = new Deadlines(clock);
    this.releaseRetries = new ReleaseRetries(clock, store, this.inFlight);
    this.suspension = new Suspension(clock, () => this.#onSuspended());
    this.renewals = new Renewals(clock, store, this.inFlight, this.deadlines, this.suspension, () =>
      this.leases(),
    );
    this.refreshes = new Refreshes(clock, store, this.inFlight);
    this.verifier = new LeaseVerifier(clock, store, this.inFlight, this.renewals, this.refreshes);
    const deafen = store.listen({
      onWakeUp: rooted((place) => this.#hint(place)),
      onReconnect: rooted(() => this.verifier.doubt(this.leases())),
      onWarning: rooted(onWarning),
      shortestLeaseMs: () => this.#shortestLeaseMs(),
    });
    if (typeof deafen !== "function") {
      throw new LockOptionError(
        `Expected the store's listen() to return a function that ends the listening, got ${formatValue(deafen)}`,
      );
    }
    this.#deafen = () => {
      try {
        deafen();
      } catch (error) {
        onWarning(`the store did not end the listening: ${errorMessage(error)}`);
      }
    };
  }

  // ---- waiting and holding ----------------------------------------------------------------------------

  /** Puts the waiter at the end of the queue for its key. */
  join(waiter: Waiter): LocalQueue | SharedQueue {
    const name = this.#nameFor(waiter);
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue =
        waiter.permits === 1
          ? new LocalQueue(this, waiter.key, name)
          : new SharedQueue(this, waiter.key, name, waiter.mayShareHold);
      this.#queues.set(name, queue);
    }
    queue.join(waiter);
    return queue;
  }

  /** Those who share a key on the same terms have one queue, by a name that no lock has. */
  #nameFor(waiter: Waiter): string {
    if (waiter.permits === 1) return waiter.key;
    const together = nameTogether(waiter);
    if (waiter.mayShareHold && (waiter.isPatient || this.#isOpen(together))) return together;
    return `${RESERVED_NAMESPACE}${this.newRequestId()}`;
  }

  /** A caller that waits for nobody joins at once, or asks the store by itself. */
  #isOpen(name: string): boolean {
    const queue = this.#queues.get(name);
    return queue instanceof SharedQueue && queue.isOpen;
  }

  /** See {@link LocalQueue.release}, and {@link SharedQueue.leave}. */
  release(lease: Lease, holder: Holder, mayHandOff: boolean, now: number, ended: Ended): void {
    if (lease instanceof SharedLease) lease.queue.leave(lease, holder, now, ended);
    else this.#of(lease).release(lease, holder.heldSince, mayHandOff, now, ended);
  }

  /** See {@link LocalQueue.leaveToExpire}. */
  leaveToExpire(lease: Lease): void {
    if (lease instanceof SharedLease) lease.queue.leaveToExpire(lease);
    else this.#of(lease).leaveToExpire(lease);
  }

  /** See {@link Renewals.strengthen}. */
  strengthen(lease: Lease, wanted: Wanted, signal: AbortSignal | undefined): Promise<void> {
    return this.renewals.strengthen(lease, wanted, signal);
  }

  /** Nobody tells when a lease that is not renewed is over: whoever is next looks again then. */
  renewNoMore(lease: Lease): void {
    this.renewals.stop(lease);
    this.firstAlone(lease.key)?.wake();
  }

  /** See {@link Renewals.prolong}. */
  prolong(lease: Lease, lockTimeMs: number, mostMs?: number): Promise<void> {
    return this.renewals.prolong(lease, { lockTimeMs, fencing: false, replicas: lease.replicas }, mostMs);
  }

  /** A lease is lost under its holder, or given back: who is next may ask. */
  onFree(lease: Lease): void {
    if (lease instanceof SharedLease && lease.isOver) lease.queue.onFree(lease);
    this.firstAlone(lease.key)?.wake();
  }

  sharedOn(waiter: Waiter): Iterable<SharedLease> {
    const queue = this.#queues.get(nameTogether(waiter));
    return queue instanceof SharedQueue ? queue.leases() : [];
  }

  firstAlone(key: string): Waiter | undefined {
    return this.#queues.get(key)?.first;
  }

  /** All that this process has, for which it is still responsible. */
  *leases(): Iterable<Lease> {
    for (const queue of this.#queues.values()) yield* queue.leases();
  }

  #shortestLeaseMs(): number {
    const now = this.clock.now();
    let shortest = Infinity;
    for (const lease of this.leases())
      if (!lease.isOver) shortest = Math.min(shortest, lease.untilDeadline(now));
    return shortest;
  }

  /** Those of this process who hold the key, and how many wait for it. */
  hereOf(key: string): { readonly leases: readonly Lease[]; readonly waiting: number } {
    const queues = [...this.#queues.values()].filter((queue) => queue.key === key);
    const leases = queues.flatMap((queue) => [...queue.leases()]);
    return { leases, waiting: queues.reduce((sum, queue) => sum + queue.waitingCount, 0) };
  }

  /** Nothing is sure any more, and what nobody renews may be free: who is first looks again, and not when it had meant to. */
  #onSuspended(): void {
    this.renewals.onSuspended(this.clock.now());
    for (const { first } of this.#queues.values()) first?.wake();
  }

  *#waiters(): Iterable<Waiter> {
    for (const queue of this.#queues.values()) yield* queue.waiters();
  }

  /** As long as a lease has not ended, it has a queue. */
  #of({ key }: Lease): LocalQueue {
    const queue = this.#queues.get(key);
    if (!(queue instanceof LocalQueue)) throw new Error(`${key} is held outside any queue`);
    return queue;
  }

  // ---- hints ------------------------------------------------------------------------------------------

  listen(listening: Listening): void {
    this.#listening.set(listening.ticket, listening);
  }

  listenNoMore(listening: Listening): void {
    this.#listening.delete(listening.ticket);
  }

  #hint(place: string | undefined): void {
    if (place !== undefined) this.#listening.get(place)?.onWakeUp();
    else for (const listening of this.#listening.values()) listening.onWakeUp();
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** Whether nobody waits or holds. */
  get isEmpty(): boolean {
    return this.#queues.size === 0 && this.#severalAtOnce === 0;
  }

  /** The keys that are held or waited for. */
  *keys(): Iterable<string> {
    for (const { key } of this.#queues.values()) yield key;
  }

  /** Calls `onChange` whenever they may have become empty. Returns a function that ends this. */
  watch(onChange: () => void): () => void {
    this.#onChange = onChange;
    return () => {
      this.#onChange = () => {};
    };
  }

  /** A caller asks for several keys together. It waits or holds until {@link onSeveralEnd}. */
  onSeveralBegin(): void {
    this.#severalAtOnce += 1;
  }

  onSeveralEnd(): void {
    this.#severalAtOnce -= 1;
    this.#onChange();
  }

  /** Whether anybody holds a lock, or gives one back. */
  get isAnybodyInside(): boolean {
    if (this.#stays === 0) return false;
    let unused = 0;
    for (const { holder } of this.leases()) {
      // While a process drains, each release asks. The first lease usually answers for all.
      if (holder?.isInUse !== false) return true;
      unused += 1;
    }
    return this.#stays > unused;
  }

  onBegin(): void {
    this.#stays += 1;
  }

  onEnd(): void {
    this.#stays -= 1;
    this.#onChange();
  }

  onEmpty(queue: { readonly name: string }): void {
    if (this.#queues.get(queue.name) === queue) this.#queues.delete(queue.name);
    this.#onChange();
  }

  /**
   * Ends the giving of locks at the moment when nobody is inside any more, or after so many milliseconds: see
   * {@link close}. Resolves then.
   *
   * @param others whoever is inside a lock of one store may need another one of another store to come to its end
   */
  drain(mostMs: number, others: readonly LockManager[] = []): Promise<void> {
    const all = [this, ...others];
    return new Promise((resolve) => {
      const end = (): void => {
        for (const each of all) each.#onChange = () => {};
        cancel();
        for (const each of all) each.close();
        resolve();
      };
      const cancel = this.clock.after(mostMs, end);
      const onChange = (): void => {
        // The last one to leave is another caller than the one that drains.
        if (!all.some((each) => each.isAnybodyInside)) inRoot(end);
      };
      for (const each of all) each.#onChange = onChange;
      onChange();
    });
  }

  /** No lock is given any more, and those who wait are told so. */
  close(): void {
    this.isClosed = true;
    this.#deafen();
    for (const waiter of Array.from(this.#waiters())) waiter.onClosed();
  }

  /** What became of a hold by somebody's hand: whoever has it here is told at once. */
  lose(key: string, requestId: string, loss: Loss): void {
    const lease = this.hereOf(key).leases.find((one) => one.requestId === requestId);
    if (lease !== undefined && !lease.isOver) this.renewals.lose(lease, loss);
  }

  /** Takes what is held from the bodies under which it is. */
  revokeAll(loss: Loss): void {
    for (const lease of Array.from(this.leases())) {
      // Who waits for others beside it was told that it waits in vain, and gives it back.
      if (lease.isOver || lease.holder?.isInUse === false) continue;
      this.renewals.lose(lease, { ...loss, isGivenBack: true });
      const mostMs = this.renewals.mostLockTimeMs(lease);
      if (lease.holder?.isAutoUnlocked === true)
        this.releaseRetries.release(lease.releaseRequest(this.clock.now()), mostMs);
    }
  }

  /**
   * Resolves when everything that was sent was answered, and everything given back that nobody wants; or after the time of
   * one command.
   */
  async settled(): Promise<void> {
    let cancel: CancelTimer = () => {};
    const timeIsUp = new Promise<void>((resolve) => {
      cancel = this.clock.after(this.inFlight.usualTimeoutMs, resolve);
    });
    await Promise.race([this.inFlight.settled().then(() => this.releaseRetries.finish()), timeIsUp]);
    cancel();
    this.releaseRetries.stop();
  }
}

function requestOf<Request>({ request }: { readonly request: Request }): Request {
  return request;
}

/** None is in it but those for a place. */
function placeRequestOf({ request }: AcquireCommand): EnqueueRequest | [] {
  return "ticket" in request ? request : [];
}

/** The queue of those who share a key on the same terms. */
function nameTogether({ key, permits, lockTimeMs, replicas }: Waiter): string {
  return `${RESERVED_NAMESPACE}${permits}:${lockTimeMs}:${replicas}:${key}`;
}
