import type { EnqueueRequest, Store, AcquireReply, AcquireRequest } from "../stores/port";
import { acquireReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/**
 * Receives the outcome of a command: `onReply` or `onFailure`, and `onFailure` after an `onReply` that throws. `onLateReply` may follow
 * `onFailure`.
 */
export interface AcquireListener<Caller> {
  onReply(command: AcquireCommand<Caller>, reply: AcquireReply): void;
  onFailure(command: AcquireCommand<Caller>, error: unknown): void;
  onLateReply(command: AcquireCommand<Caller>, reply: AcquireReply): void;
}

/** One command that may acquire a key, with its own `requestId`. */
export class AcquireCommand<Caller = unknown> implements Command<AcquireReply> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly request: AcquireRequest | EnqueueRequest;
  /** On the monotonic clock: a time before the command was sent. A grant counts from here. */
  readonly sentAt: number;
  /** The caller for which the listener sent it. */
  readonly caller: Caller;
  readonly #store: Store;
  readonly #listener: AcquireListener<Caller>;

  constructor(
    store: Store,
    listener: AcquireListener<Caller>,
    request: AcquireRequest | EnqueueRequest,
    sentAt: number,
    asker: Caller,
  ) {
    this.#store = store;
    this.#listener = listener;
    this.request = request;
    this.sentAt = sentAt;
    this.caller = asker;
  }

  /** Whether it enqueues a ticket if it cannot acquire the key. */
  get isEnqueue(): boolean {
    return "ticket" in this.request;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<AcquireReply> {
    const { request, timeoutMs } = this;
    const store = this.#store;
    return "ticket" in request && store.queue !== undefined
      ? store.queue.enqueue(request, timeoutMs)
      : store.acquire(request, timeoutMs);
  }

  read(reply: unknown): AcquireReply {
    return acquireReply(reply, this.request.fencing, this.request.count);
  }

  onReply(reply: AcquireReply): void {
    this.#listener.onReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onFailure(this, error);
  }

  onLateReply(reply: AcquireReply): void {
    this.#listener.onLateReply(this, reply);
  }
}
