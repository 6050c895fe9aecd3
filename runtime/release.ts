import { NEVER_DUE, type Command } from "./commands";
import type { Lease } from "./lease";
import type { AcquireRequest, Released, ReleaseReply, Store } from "./store";
import type { Sent, Ticket } from "./ticket";

/** Is told what came of a release. `unknown`: the store did not answer, which is the trouble. */
export type Releasing = (outcome: ReleaseReply | "unknown", trouble?: unknown) => void;

/** The command that gives a lease back. */
export class Release implements Command<Released> {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly lease: Lease;
  protected readonly store: Store;
  readonly #done: Releasing;

  constructor(store: Store, lease: Lease, done: Releasing) {
    this.store = store;
    this.lease = lease;
    this.#done = done;
  }

  send(): Promise<Released> {
    return this.store.release(this.lease.key, this.lease.requestId);
  }

  heard(reply: Released): void {
    this.#done(reply.outcome); // Told before the next one tells that it holds the lock.
    this.heardLate(reply);
    this.lease.line.end(this.lease);
  }

  failed(error: unknown): void {
    this.#done("unknown", error);
    this.lease.line.releaseOnceMore(this.lease);
    this.lease.line.end(this.lease);
  }

  heardLate(_reply: Released): void {}
}

/** The same, with an application for the one who is next in line here. */
export class ReleaseToNext extends Release {
  readonly #ticket: Ticket;
  readonly #sent: Sent;

  constructor(
    store: Store,
    lease: Lease,
    done: Releasing,
    ticket: Ticket,
    next: AcquireRequest,
    sentAt: number,
  ) {
    super(store, lease, done);
    this.#ticket = ticket;
    this.#sent = { kind: "wait", request: next, sentAt, unansweredSince: sentAt };
    ticket.sends(this.#sent);
  }

  override send(): Promise<Released> {
    return this.store.release(this.lease.key, this.lease.requestId, this.#sent.request);
  }

  override heard(reply: Released): void {
    if (reply.isQueued === true) this.#ticket.placed();
    super.heard(reply);
  }

  override failed(error: unknown): void {
    this.#ticket.outcomeUnknown(this.#sent.sentAt, error);
    super.failed(error);
  }

  override heardLate({ handedOn }: Released): void {
    if (handedOn !== undefined) this.#ticket.take(this.#sent, handedOn);
  }
}
