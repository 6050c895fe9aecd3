import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  Store,
} from "../stores/port";
import { releaseReply, releaseAndEnqueueReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/** Is told what came of a drop: exactly one of the two. */
export interface ReleaseListener<Held> {
  onReleaseReply(drop: ReleaseCommand<Held>, reply: ReleaseReply): void;
  onReleaseFailure(drop: ReleaseCommand<Held>, error: unknown): void;
}

/** The command that ends a hold. */
export class ReleaseCommand<Held> implements Command<ReleaseReply> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly request: ReleaseRequest;
  /** What the listener knows it by. */
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

/** Is told what came of a drop with a successor: exactly one of the first two; after a failure maybe the third. */
export interface ReleaseAndEnqueueListener<Held> {
  onReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<Held>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void;
  onReleaseAndEnqueueFailure(next: ReleaseAndEnqueueCommand<Held>, error: unknown): void;
  onLateReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<Held>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void;
}

/** The command that ends a hold, and asks for the same key, with a `requestId` of its own, for who is next here. */
export class ReleaseAndEnqueueCommand<Held> implements Command<ReleaseAndEnqueueReply | NotReleased> {
  timeoutMs = 0;
  dueAt = NEVER_DUE;
  readonly release: ReleaseRequest;
  /** What the listener knows the ended hold by. */
  readonly held: Held;
  readonly request: EnqueueRequest;
  /** On the monotonic clock: what it is granted counts from here. */
  readonly sentAt: number;
  readonly #store: Store;
  readonly #listener: ReleaseAndEnqueueListener<Held>;

  constructor(
    store: Store,
    listener: ReleaseAndEnqueueListener<Held>,
    dropped: ReleaseRequest,
    held: Held,
    request: EnqueueRequest,
    sentAt: number,
  ) {
    this.#store = store;
    this.#listener = listener;
    this.release = dropped;
    this.held = held;
    this.request = request;
    this.sentAt = sentAt;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#store.releaseAndEnqueue(this.release, this.request, this.timeoutMs);
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
