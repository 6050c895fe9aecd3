import type { CancelTimer, Clock } from "../base/clock";
import { LockOptionError, errorMessage } from "../base/errors";
import { formatValue } from "../base/format-value";
import { RecyclingMap } from "../base/recycling-map";
import { inRoot, rooted } from "../base/root-context";
import type { Store } from "../stores/port";
import { ExclusiveQueue } from "./exclusive-queue";
import type { KeyQueue } from "./key-queue";
import type { Lease } from "./lease";
import type { Loss } from "./loss";
import { QueueContext, type EndingQueue, type WakeUpListener } from "./queue-context";
import type { Wanted } from "./renewals";
import { SharedLease } from "./shared-lease";
import { SharedQueue } from "./shared-queue";
import type { Waiter } from "./waiter";

/**
 * The waiters and the leases of this process, by key. A release hands the lock off to the next waiter of this process. From time to time,
 * it goes through the store queue to another process instead, so that no process starves.
 */
export class LockManager extends QueueContext {
  /** The callers that want a key alone, by key. */
  readonly #exclusive = new RecyclingMap<string, ExclusiveQueue>();
  /** The callers that share a key, by key. */
  readonly #shared = new RecyclingMap<string, SharedQueues>();
  /** The receivers of wake-ups, by their ticket in a store queue. */
  readonly #listeners = new RecyclingMap<string, WakeUpListener>();
  readonly #unsubscribe: () => void;
  /** The number of leases that have not ended. */
  #leaseCount = 0;
  /** The number of callers that acquire or hold several keys together. Between two tries, they may be in no queue. */
  #multiLockCount = 0;
  /** The trials of `ready()` that have not ended. */
  readonly #trials = new Set<Promise<void>>();
  /** Whether it waits for bodies, and will then stop granting locks. */
  isDraining = false;
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
    super(clock, store, commandTimeoutMs, newRequestId, (error) =>
      onWarning(`could not process a reply from the store: ${errorMessage(error)}`),
    );
    const unsubscribe =
      store.listen === undefined
        ? () => {}
        : store.listen({
            onWakeUp: rooted((ticket) => this.#onWakeUp(ticket)),
            onReconnect: rooted(() => this.verifier.doubt(this.leases())),
            onWarning: rooted(onWarning),
            shortestTimeLeftMs: () => this.#shortestTimeLeftMs(),
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

  /** Puts the waiter at the end of a queue for its key. */
  join(waiter: Waiter): KeyQueue {
    const queue = waiter.terms.permits === 1 ? this.#exclusiveQueueFor(waiter) : this.#sharedQueueFor(waiter);
    queue.join(waiter);
    return queue;
  }

  #exclusiveQueueFor({ key }: Waiter): ExclusiveQueue {
    let queue = this.#exclusive.get(key);
    if (queue === undefined) {
      queue = new ExclusiveQueue(this, key);
      this.#exclusive.set(key, queue);
    }
    return queue;
  }

  /**
   * Returns the queue of all waiters on the same terms, or a new queue for this waiter alone. A waiter is alone if it may not share its hold.
   * So is a caller that does not wait, unless it can join a hold immediately.
   */
  #sharedQueueFor(waiter: Waiter): SharedQueue {
    const { key, isPatient, terms } = waiter;
    let queues = this.#shared.get(key);
    if (queues === undefined) {
      queues = new RecyclingMap();
      this.#shared.set(key, queues);
    }
    const { mayShareHold } = terms;
    const sharedTerms = sharedTermsOf(waiter);
    const common = queues.get(sharedTerms);
    const isAlone = !mayShareHold || (!isPatient && common?.isOpen !== true);
    if (common !== undefined && !isAlone) return common;
    const queue = new SharedQueue(this, key, isAlone ? undefined : sharedTerms, mayShareHold);
    queues.set(queue.terms ?? queue, queue);
    return queue;
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
    return this.#shared.get(waiter.key)?.get(sharedTermsOf(waiter))?.leases() ?? [];
  }

  firstExclusive(key: string): Waiter | undefined {
    return this.#exclusive.get(key)?.first;
  }

  *#queues(): Iterable<KeyQueue> {
    yield* this.#exclusive.values();
    for (const queues of this.#shared.values()) yield* queues.values();
  }

  *#queuesOf(key: string): Iterable<KeyQueue> {
    const exclusive = this.#exclusive.get(key);
    if (exclusive !== undefined) yield exclusive;
    yield* this.#shared.get(key)?.values() ?? [];
  }

  *leases(): Iterable<Lease> {
    for (const queue of this.#queues()) yield* queue.leases();
  }

  #shortestTimeLeftMs(): number {
    const now = this.clock.now();
    let shortest = Infinity;
    for (const queue of this.#queues()) {
      for (const lease of queue.leases())
        if (!lease.isOver) shortest = Math.min(shortest, lease.untilDeadline(now));
      for (const waiter of queue.waiters())
        shortest = Math.min(shortest, waiter.timeoutMs(now, this.inFlight.usualTimeoutMs));
    }
    return shortest;
  }

  /** Returns the leases of this process on the key, and the number of its waiters. */
  hereOf(key: string): { readonly leases: readonly Lease[]; readonly waiting: number } {
    const queues = [...this.#queuesOf(key)];
    const leases = queues.flatMap((queue) => [...queue.leases()]);
    return { leases, waiting: queues.reduce((sum, queue) => sum + queue.waitingCount, 0) };
  }

  /** A key that nobody renews may be free by now, so each first waiter tries again immediately. */
  protected onSuspended(): void {
    this.renewals.onSuspended(this.clock.now());
    for (const { first } of this.#queues()) first?.wake();
  }

  *#waiters(): Iterable<Waiter> {
    for (const queue of this.#queues()) yield* queue.waiters();
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
    return this.#exclusive.size === 0 && this.#shared.size === 0 && this.#multiLockCount === 0;
  }

  /** Returns the keys that callers hold or wait for. A key may occur twice. */
  *keys(): Iterable<string> {
    for (const { key } of this.#queues()) yield key;
  }

  /** Counts the callers that hold a key, and those that wait for one. */
  counts(): { readonly held: number; readonly waiting: number } {
    let [held, waiting] = [0, 0];
    for (const queue of this.#queues()) {
      waiting += queue.waitingCount;
      for (const lease of queue.leases()) if (!lease.isOver) held += lease.callers;
    }
    return { held, waiting };
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

  onEnd(queue: EndingQueue): void {
    this.#leaseCount -= 1;
    if (queue.isEmpty) this.#remove(queue);
    this.#onChange();
  }

  onEmpty(queue: EndingQueue): void {
    this.#remove(queue);
    this.#onChange();
  }

  #remove(queue: EndingQueue): void {
    if (queue instanceof SharedQueue) this.#removeShared(queue);
    else if (this.#exclusive.get(queue.key) === queue) this.#exclusive.delete(queue.key);
  }

  #removeShared(queue: SharedQueue): void {
    const queues = this.#shared.get(queue.key);
    const id = queue.terms ?? queue;
    if (queues?.get(id) !== queue) return;
    queues.delete(id);
    if (queues.size === 0) this.#shared.delete(queue.key);
  }

  /**
   * Stops granting locks when no lock is in use, or after `timeoutMs`: see {@link close}. Resolves then. 0 needs no timer, because a test may
   * have replaced the timers.
   *
   * @param others the managers of the other stores. A body under a lock of one store may need a lock of another store before it can end
   */
  drain(timeoutMs: number, others: readonly LockManager[] = []): Promise<void> {
    const all = [this, ...others];
    for (const each of all) each.isDraining = true;
    return new Promise((resolve) => {
      const end = (): void => {
        for (const each of all) each.#onChange = () => {};
        cancel();
        for (const each of all) each.close();
        resolve();
      };
      const cancel = timeoutMs > 0 ? this.clock.after(timeoutMs, end) : () => {};
      const onChange = (): void => {
        // This runs in the context of the caller that releases, and not of the one that drains.
        if (!all.some((each) => each.isAnyInUse)) inRoot(end);
      };
      for (const each of all) each.#onChange = onChange;
      if (timeoutMs > 0) onChange();
      else inRoot(end);
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

  /** Revokes all locks that are in use, and releases them in the store unless their keys may stay (`autoUnlock`). */
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

  /** Makes {@link settled} wait until a trial of `ready()` has released its lock. The promise must not reject. */
  waitForTrial(trial: Promise<void>): void {
    this.#trials.add(trial);
    void trial.then(() => this.#trials.delete(trial));
  }

  /**
   * Resolves when all commands are answered and all unwanted holds are released, or after the usual timeout of one command.
   */
  async settled(): Promise<void> {
    let cancel: CancelTimer = () => {};
    const timeIsUp = new Promise<void>((resolve) => {
      cancel = this.clock.after(this.inFlight.usualTimeoutMs, resolve);
    });
    const finish = async (): Promise<void> => {
      await Promise.all(this.#trials);
      await this.inFlight.settled();
      await this.releaseRetries.finish();
    };
    await Promise.race([finish(), timeIsUp]);
    cancel();
    this.releaseRetries.stop();
  }
}

/** The queues for one key that is shared: by the terms of their callers, or by themselves if they have one caller alone. */
type SharedQueues = RecyclingMap<string | SharedQueue, SharedQueue>;

/** Returns the terms that callers must have in common to share a hold. */
function sharedTermsOf({ terms: { permits, lockTimeMs, replicas } }: Waiter): string {
  return `${permits}:${lockTimeMs}:${replicas}`;
}
