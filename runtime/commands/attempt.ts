import type { PlaceRequest, Store, TakeReply, TakeRequest } from "../stores/port";
import { takeReply } from "../stores/replies";
import { NEVER_DUE, type Command } from "./in-flight";

/** Is told what came of an attempt: once at most `onReply` or `onFailure`; after a failure maybe `onLateReply`. */
export interface AttemptListener<Asker> {
  onReply(attempt: Attempt<Asker>, reply: TakeReply): void;
  onFailure(attempt: Attempt<Asker>, error: unknown): void;
  onLateReply(attempt: Attempt<Asker>, reply: TakeReply): void;
}

/** One command that may take a key, with a `requestId` of its own. */
export class Attempt<Asker = unknown> implements Command<TakeReply> {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly request: TakeRequest | PlaceRequest;
  /** On the monotonic clock, at the latest: what it is granted counts from here. */
  readonly sentAt: number;
  /** For whom the listener sent it. */
  readonly asker: Asker;
  readonly #store: Store;
  readonly #listener: AttemptListener<Asker>;

  constructor(
    store: Store,
    listener: AttemptListener<Asker>,
    request: TakeRequest | PlaceRequest,
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
  get isForPlace(): boolean {
    return "place" in this.request;
  }

  get isInFlight(): boolean {
    return this.dueAt !== NEVER_DUE;
  }

  send(): Promise<TakeReply> {
    const { request } = this;
    return "place" in request
      ? this.#store.place(request, this.withinMs)
      : this.#store.take(request, this.withinMs);
  }

  read(reply: unknown): TakeReply {
    return takeReply(reply, this.request.fencing, this.request.count);
  }

  onReply(reply: TakeReply): void {
    this.#listener.onReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#listener.onFailure(this, error);
  }

  onLateReply(reply: TakeReply): void {
    this.#listener.onLateReply(this, reply);
  }
}
