import type { EnqueueRequest, Store, AcquireReply, AcquireRequest } from "../stores/port";
import { acquireReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/** Is told what came of an attempt: once at most `onReply` or `onFailure`; after a failure maybe `onLateReply`. */
export interface AcquireListener<Asker> {
  onReply(attempt: AcquireCommand<Asker>, reply: AcquireReply): void;
  onFailure(attempt: AcquireCommand<Asker>, error: unknown): void;
  onLateReply(attempt: AcquireCommand<Asker>, reply: AcquireReply): void;
}

/** One command that may take a key, with a `requestId` of its own. */
export class AcquireCommand<Asker = unknown> implements Command<AcquireReply> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly request: AcquireRequest | EnqueueRequest;
  /** On the monotonic clock, at the latest: what it is granted counts from here. */
  readonly sentAt: number;
  /** For whom the listener sent it. */
  readonly asker: Asker;
  readonly #store: Store;
  readonly #listener: AcquireListener<Asker>;

  constructor(
    store: Store,
    listener: AcquireListener<Asker>,
    request: AcquireRequest | EnqueueRequest,
    sentAt: number,
    asker: Asker,
  ) {
    this.#store = store;
    this.#listener = listener;
    this.request = request;
    this.sentAt = sentAt;
    this.asker = asker;
  }

  /** Whether it asks for a place in the key's queue, too. */
  get isEnqueue(): boolean {
    return "ticket" in this.request;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<AcquireReply> {
    const { request } = this;
    return "ticket" in request
      ? this.#store.enqueue(request, this.timeoutMs)
      : this.#store.acquire(request, this.timeoutMs);
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
