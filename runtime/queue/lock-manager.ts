import type { CancelTimer, Clock } from "../base/clock";
import type { AcquireCommand } from "../commands/acquire";
import type { ReleaseCommand } from "../commands/release";
import { Batch, InFlight } from "../commands/in-flight";
import { LockOptionError, errorMessage } from "../base/errors";
import { RESERVED_NAMESPACE } from "../base/limits";
import { inRoot, rooted } from "../base/root-context";
import { RecyclingMap } from "../base/recycling-map";
import { formatValue } from "../base/format-value";
import {
  MOST_AT_ONCE,
  type ReleaseReply,
  type EnqueueRequest,
  type Store,
  type AcquireReply,
} from "../stores/port";
import { Suspension } from "../base/suspension";
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
import type { WakeUpListener, QueueContext } from "./queue-context";
import { SharedLease } from "./shared-lease";
import { SharedQueue } from "./shared-queue";
import type { Ended } from "./hand-off-turn";
import type { Waiter } from "./waiter";

/**
 * The waiters and the leases of this process, by key. A release hands the lock off to the next waiter of this process. From time to time,
 * it goes through the store queue to another process instead, so that no process starves.
 */
export class LockManager implements QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly inFlight: InFlight;
  /** Wakes waiters at a given time. */
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
  /** Whether no more locks are granted. */
  isClosed = false;
  readonly #queues = new RecyclingMap<string, LocalQueue | SharedQueue>();
  /** The receivers of wake-ups, by their ticket in a store queue. */
  readonly #listeners = new RecyclingMap<string, WakeUpListener>();
  readonly #unsubscribe: () => void;
  /** How many leases have not ended. */
  #leaseCount = 0;
  /** How many callers acquire or hold several keys together. Between two tries, they may be in no queue. */
  #multiLockCount = 0;
  /** Called when a lease has ended, a queue was removed, or a caller with several keys has finished. */
  #onChange = (): void => {};

  /** @param onWarning called with each warning of the store, and with each error in handling a reply */
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
      onWarning(`could not process a reply of the store: ${errorMessage(error)}`),
    );
    const { batch } = store;
    const mostAtOnce = batch?.splitsMany === true ? Infinity : MOST_AT_ONCE;
    this.acquires = new Batch(
      this.inFlight,
      batch && ((attempts, timeoutMs) => batch.acquireMany(attempts.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    this.releases = new Batch(
      this.inFlight,
      batch && ((releases, timeoutMs) => batch.releaseMany(releases.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    const enqueueMany = store.queue === undefined ? undefined : batch?.enqueueMany;
    this.enqueues = new Batch(
      this.inFlight,
      enqueueMany &&
        ((attempts, timeoutMs) => enqueueMany.call(batch, attempts.flatMap(enqueueRequestOf), timeoutMs)),
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
    const unsubscribe =
      store.listen === undefined
        ? () => {}
        : store.listen({
            onWakeUp: rooted((ticket) => this.#onWakeUp(ticket)),
            onReconnect: rooted(() => this.verifier.doubt(this.leases())),
            onWarning: rooted(onWarning),
            shortestLeaseMs: () => this.#shortestLeaseMs(),
          });
    if (typeof unsubscribe !== "function") {
      throw new LockOptionError(
        `Expected the store's listen() to return a function that unsubscribes, got ${formatValue(unsubscribe)}`,
      );
    }
    this.#unsubscribe = () => {
      try {
        unsubscribe();
      } catch (error) {
        onWarning(`could not unsubscribe from the store: ${errorMessage(error)}`);
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

  /** Returns the name of the queue for a waiter. Waiters that share a key on the same terms have one queue, with a name that is no key. */
  #nameFor(waiter: Waiter): string {
    if (waiter.permits === 1) return waiter.key;
    const name = sharedQueueName(waiter);
    if (waiter.mayShareHold && (waiter.isPatient || this.#isOpen(name))) return name;
    return `${RESERVED_NAMESPACE}${this.newRequestId()}`;
  }

  /** Whether a caller that does not wait can join a hold of that queue immediately. Otherwise, it asks the store from its own queue. */
  #isOpen(name: string): boolean {
    const queue = this.#queues.get(name);
    return queue instanceof SharedQueue && queue.isOpen;
  }

  /** See {@link LocalQueue.release}, and {@link SharedQueue.leave}. */
  release(lease: Lease, holder: Holder, mayHandOff: boolean, now: number, ended: Ended): void {
    if (lease instanceof SharedLease) lease.queue.leave(lease, holder, now, ended);
    else this.#queueOf(lease).release(lease, holder.heldSince, mayHandOff, now, ended);
  }

  /** See {@link LocalQueue.leaveToExpire}. */
  leaveToExpire(lease: Lease): void {
    if (lease instanceof SharedLease) lease.queue.leaveToExpire(lease);
    else this.#queueOf(lease).leaveToExpire(lease);
  }

  /** See {@link Renewals.strengthen}. */
  strengthen(lease: Lease, wanted: Wanted, signal: AbortSignal | undefined): Promise<void> {
    return this.renewals.strengthen(lease, wanted, signal);
  }

  /** Stops the renewals of a lease. No message reports its end then, so the next waiter plans its own try for that time. */
  stopRenewing(lease: Lease): void {
    this.renewals.stop(lease);
    this.firstExclusive(lease.key)?.wake();
  }

  /** See {@link Renewals.prolong}. */
  prolong(lease: Lease, lockTimeMs: number, timeoutMs?: number): Promise<void> {
    return this.renewals.prolong(lease, { lockTimeMs, fencing: false, replicas: lease.replicas }, timeoutMs);
  }

  /** Wakes the next waiters, because the lease was lost or released. */
  onFree(lease: Lease): void {
    if (lease instanceof SharedLease && lease.isOver) lease.queue.onFree(lease);
    this.firstExclusive(lease.key)?.wake();
  }

  sharedLeasesFor(waiter: Waiter): Iterable<SharedLease> {
    const queue = this.#queues.get(sharedQueueName(waiter));
    return queue instanceof SharedQueue ? queue.leases() : [];
  }

  firstExclusive(key: string): Waiter | undefined {
    return this.#queues.get(key)?.first;
  }

  /** Returns all leases for which this process is still responsible. */
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

  /** Returns the leases of this process on the key, and the number of its waiters. */
  hereOf(key: string): { readonly leases: readonly Lease[]; readonly waiting: number } {
    const queues = [...this.#queues.values()].filter((queue) => queue.key === key);
    const leases = queues.flatMap((queue) => [...queue.leases()]);
    return { leases, waiting: queues.reduce((sum, queue) => sum + queue.waitingCount, 0) };
  }

  /** Handles a suspension. A key that nobody renews may be free by now, so each first waiter tries again immediately. */
  #onSuspended(): void {
    this.renewals.onSuspended(this.clock.now());
    for (const { first } of this.#queues.values()) first?.wake();
  }

  *#waiters(): Iterable<Waiter> {
    for (const queue of this.#queues.values()) yield* queue.waiters();
  }

  /** Returns the queue of a lease. A lease that has not ended has one. */
  #queueOf({ key }: Lease): LocalQueue {
    const queue = this.#queues.get(key);
    if (!(queue instanceof LocalQueue)) throw new Error(`${key} is held outside any queue`);
    return queue;
  }

  // ---- wake-ups ---------------------------------------------------------------------------------------

  listen(listener: WakeUpListener): void {
    this.#listeners.set(listener.id, listener);
  }

  stopListening(listener: WakeUpListener): void {
    this.#listeners.delete(listener.id);
  }

  #onWakeUp(ticket: string | undefined): void {
    if (ticket !== undefined) this.#listeners.get(ticket)?.onWakeUp();
    else for (const listener of this.#listeners.values()) listener.onWakeUp();
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** Whether there are no waiters and no leases. */
  get isEmpty(): boolean {
    return this.#queues.size === 0 && this.#multiLockCount === 0;
  }

  /** Returns the keys that callers hold or wait for. A key may occur twice. */
  *keys(): Iterable<string> {
    for (const { key } of this.#queues.values()) yield key;
  }

  /** Calls `onChange` whenever this may have become empty. Returns a function that ends this. */
  watch(onChange: () => void): () => void {
    this.#onChange = onChange;
    return () => {
      this.#onChange = () => {};
    };
  }

  /** Notes a caller that acquires several keys together. It waits or holds until {@link onMultiLockEnd}. */
  onMultiLockBegin(): void {
    this.#multiLockCount += 1;
  }

  onMultiLockEnd(): void {
    this.#multiLockCount -= 1;
    this.#onChange();
  }

  /** Whether any lock is in use or is being released. */
  get isAnyInUse(): boolean {
    if (this.#leaseCount === 0) return false;
    let unused = 0;
    for (const { holder } of this.leases()) {
      // While a process drains, each release calls this. The first lease usually decides.
      if (holder?.isInUse !== false) return true;
      unused += 1;
    }
    return this.#leaseCount > unused;
  }

  onBegin(): void {
    this.#leaseCount += 1;
  }

  onEnd(): void {
    this.#leaseCount -= 1;
    this.#onChange();
  }

  onEmpty(queue: { readonly name: string }): void {
    if (this.#queues.get(queue.name) === queue) this.#queues.delete(queue.name);
    this.#onChange();
  }

  /**
   * Stops granting locks when no lock is in use any more, or after `timeoutMs`: see {@link close}. Resolves then.
   *
   * @param others the managers of the other stores. A body under a lock of one store may need a lock of another store before it can end
   */
  drain(timeoutMs: number, others: readonly LockManager[] = []): Promise<void> {
    const all = [this, ...others];
    return new Promise((resolve) => {
      const end = (): void => {
        for (const each of all) each.#onChange = () => {};
        cancel();
        for (const each of all) each.close();
        resolve();
      };
      const cancel = this.clock.after(timeoutMs, end);
      const onChange = (): void => {
        // This runs in the context of the caller that releases, and not of the one that drains.
        if (!all.some((each) => each.isAnyInUse)) inRoot(end);
      };
      for (const each of all) each.#onChange = onChange;
      onChange();
    });
  }

  /** Stops granting locks, and rejects all waiters. */
  close(): void {
    this.isClosed = true;
    this.#unsubscribe();
    for (const waiter of Array.from(this.#waiters())) waiter.onClosed();
  }

  /** Reports to the holder in this process that its hold was revoked or freed. */
  lose(key: string, requestId: string, loss: Loss): void {
    const lease = this.hereOf(key).leases.find((one) => one.requestId === requestId);
    if (lease !== undefined && !lease.isOver) this.renewals.lose(lease, loss);
  }

  /** Revokes all locks that are in use, and releases them in the store unless they have `autoUnlock=false`. */
  revokeAll(loss: Loss): void {
    for (const lease of Array.from(this.leases())) {
      // A caller that still waits for other keys was rejected, and releases this one itself.
      if (lease.isOver || lease.holder?.isInUse === false) continue;
      this.renewals.lose(lease, { ...loss, isReleased: true });
      const timeoutMs = this.renewals.maxLockTimeMs(lease);
      if (lease.holder?.isAutoUnlocked === true)
        this.releaseRetries.release(lease.releaseRequest(this.clock.now()), timeoutMs);
    }
  }

  /**
   * Resolves when all commands are answered and all unwanted holds are released, or after the usual timeout of one command.
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

/** Returns the request of a command. The batch contains only commands that enqueue. */
function enqueueRequestOf({ request }: AcquireCommand): EnqueueRequest | [] {
  return "ticket" in request ? request : [];
}

/** Returns the name of the queue for waiters that share a key on the same terms. */
function sharedQueueName({ key, permits, lockTimeMs, replicas }: Waiter): string {
  return `${RESERVED_NAMESPACE}${permits}:${lockTimeMs}:${replicas}:${key}`;
}
