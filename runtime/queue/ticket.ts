import type { QueueContext, WakeUpListener } from "./queue-context";

/** The local queue whose first waiter uses the ticket. */
interface LocalQueue {
  readonly key: string;
  readonly first: { wake(): void } | undefined;
}

/** A position in the store queue, on behalf of the first waiter of this process. A request enqueues it. */
export class Ticket implements WakeUpListener {
  readonly id: string;
  /** Whether it is, or may be, in the store queue. */
  isEnqueued = false;
  /** For a shared lock, on the monotonic clock: callers that had arrived by this time precede all waiters behind this ticket. */
  coversUntil = -Infinity;
  readonly #context: QueueContext;
  readonly #localQueue: LocalQueue;
  #isListening = false;
  /** Whether it was enqueued so recently that another request would learn nothing new. */
  #isFresh = false;
  /** Whether a wake-up arrived since the last command was sent. */
  #hasWakeUp = false;

  constructor(context: QueueContext, localQueue: LocalQueue) {
    this.#context = context;
    this.#localQueue = localQueue;
    this.id = context.newRequestId();
  }

  /** Prepares for a request that enqueues it. The caller must send the request immediately. */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#context.listen(this);
  }

  /** Notes that a command is being sent. Its reply makes all earlier wake-ups obsolete. */
  onSent(): void {
    this.#hasWakeUp = false;
  }

  /**
   * Notes that the store has just enqueued it together with a release.
   *
   * @param isFresh whether another request now would learn nothing new
   */
  onEnqueuedWithRelease(isFresh: boolean): void {
    this.#isFresh = isFresh;
  }

  /** Whether another request can learn something new. Asking this makes the next answer `true`. */
  mayHaveNews(): boolean {
    const isPointless = this.#isFresh && !this.#hasWakeUp;
    this.#isFresh = false;
    return !isPointless;
  }

  /** Makes the first waiter ask again, because the key may be reserved for this ticket. */
  onWakeUp(): void {
    this.#hasWakeUp = true;
    this.#localQueue.first?.wake();
  }

  stopListening(): void {
    if (this.#isListening) this.#context.stopListening(this);
  }

  /** Removes it from the store queue. No command may be in flight that could enqueue it again. */
  dequeue(): void {
    if (!this.isEnqueued) return;
    this.isEnqueued = false;
    this.#context.releaseRetries.dequeue(this.#localQueue.key, this.id);
  }
}
