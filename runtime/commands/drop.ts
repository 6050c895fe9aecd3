import type { DropReply, DropRequest, NextReply, NotDropped, PlaceRequest, Store } from "../stores/port";
import { dropReply, nextReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/** Is told what came of a drop: exactly one of the two. */
export interface DropListener<Held> {
  onDropReply(drop: Drop<Held>, reply: DropReply): void;
  onDropFailure(drop: Drop<Held>, error: unknown): void;
}

/** The command that ends a hold. */
export class Drop<Held> implements Command<DropReply> {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly request: DropRequest;
  /** What the listener knows it by. */
  readonly held: Held;
  readonly #store: Store;
  readonly #listener: DropListener<Held>;

  constructor(store: Store, listener: DropListener<Held>, request: DropRequest, held: Held) {
    this.#store = store;
    this.#listener = listener;
    this.request = request;
    this.held = held;
  }

  send(): Promise<DropReply> {
    return this.#store.drop(this.request, this.withinMs);
  }

  read(reply: unknown): DropReply {
    return dropReply(reply);
  }

  onReply(reply: DropReply): void {
    this.#listener.onDropReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onDropFailure(this, error);
  }

  onLateReply(): void {}
}

/** Is told what came of a drop with a successor: exactly one of the first two; after a failure maybe the third. */
export interface NextListener<Held> {
  onNextReply(next: Next<Held>, reply: NextReply | NotDropped): void;
  onNextFailure(next: Next<Held>, error: unknown): void;
  onLateNextReply(next: Next<Held>, reply: NextReply | NotDropped): void;
}

/** The command that ends a hold, and asks for the same key, with a `requestId` of its own, for who is next here. */
export class Next<Held> implements Command<NextReply | NotDropped> {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly dropped: DropRequest;
  /** What the listener knows the ended hold by. */
  readonly held: Held;
  readonly request: PlaceRequest;
  /** On the monotonic clock: what it is granted counts from here. */
  readonly sentAt: number;
  readonly #store: Store;
  readonly #listener: NextListener<Held>;

  constructor(
    store: Store,
    listener: NextListener<Held>,
    dropped: DropRequest,
    held: Held,
    request: PlaceRequest,
    sentAt: number,
  ) {
    this.#store = store;
    this.#listener = listener;
    this.dropped = dropped;
    this.held = held;
    this.request = request;
    this.sentAt = sentAt;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<NextReply | NotDropped> {
    return this.#store.next(this.dropped, this.request, this.withinMs);
  }

  read(reply: unknown): NextReply | NotDropped {
    return nextReply(reply, this.request.fencing);
  }

  onReply(reply: NextReply | NotDropped): void {
    this.#listener.onNextReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onNextFailure(this, error);
  }

  onLateReply(reply: NextReply | NotDropped): void {
    this.#listener.onLateNextReply(this, reply);
  }
}
