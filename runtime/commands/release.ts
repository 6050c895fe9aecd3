import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  Store,
  StoreQueue,
} from "../stores/port";
import { releaseReply, releaseAndEnqueueReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/**
 * Receives the outcome of a release: `onReleaseReply` or `onReleaseFailure`. `onReleaseFailure` also follows an `onReleaseReply` that
 * throws.
 */
export interface ReleaseListener<Held> {
  onReleaseReply(command: ReleaseCommand<Held>, reply: ReleaseReply): void;
  onReleaseFailure(command: ReleaseCommand<Held>, error: unknown): void;
}

/** The command that ends a hold. */
export class ReleaseCommand<Held> implements Command<ReleaseReply> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly request: ReleaseRequest;
  /** Identifies the hold for the listener. */
  readonly held: Held;
  readonly #store: Store;
  readonly #listener: ReleaseListener<Held>;

  constructor(store: Store, listener: ReleaseListener<Held>, request: ReleaseRequest, held: Held) {
    this.#store = store;
    this.#listener = listener;
    this.request = request;
    this.held = held;
  }

  send(): Promise<ReleaseReply> {
    return this.#store.release(this.request, this.timeoutMs);
  }

  read(reply: unknown): ReleaseReply {
    return releaseReply(reply);
  }

  onReply(reply: ReleaseReply): void {
    this.#listener.onReleaseReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onReleaseFailure(this, error);
  }

  onLateReply(): void {}
}

/**
 * Receives the outcome of a release that also enqueues: a reply or a failure, and a failure after a reply handler that throws. A late reply
 * may follow a failure.
 */
export interface ReleaseAndEnqueueListener<Held> {
  onReleaseAndEnqueueReply(
    command: ReleaseAndEnqueueCommand<Held>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void;
  onReleaseAndEnqueueFailure(command: ReleaseAndEnqueueCommand<Held>, error: unknown): void;
  onLateReleaseAndEnqueueReply(
    command: ReleaseAndEnqueueCommand<Held>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void;
}

/** The command that ends a hold, and acquires or enqueues for the next waiter of this process, with its own `requestId`. */
export class ReleaseAndEnqueueCommand<Held> implements Command<ReleaseAndEnqueueReply | NotReleased> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly release: ReleaseRequest;
  /** Identifies the released hold for the listener. */
  readonly held: Held;
  readonly request: EnqueueRequest;
  /** On the monotonic clock: a time before the command was sent. A grant counts from here. */
  readonly sentAt: number;
  readonly #queue: StoreQueue;
  readonly #listener: ReleaseAndEnqueueListener<Held>;

  constructor(
    queue: StoreQueue,
    listener: ReleaseAndEnqueueListener<Held>,
    release: ReleaseRequest,
    held: Held,
    request: EnqueueRequest,
    sentAt: number,
  ) {
    this.#queue = queue;
    this.#listener = listener;
    this.release = release;
    this.held = held;
    this.request = request;
    this.sentAt = sentAt;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#queue.releaseAndEnqueue(this.release, this.request, this.timeoutMs);
  }

  read(reply: unknown): ReleaseAndEnqueueReply | NotReleased {
    return releaseAndEnqueueReply(reply, this.request.fencing);
  }

  onReply(reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.#listener.onReleaseAndEnqueueReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onReleaseAndEnqueueFailure(this, error);
  }

  onLateReply(reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.#listener.onLateReleaseAndEnqueueReply(this, reply);
  }
}
