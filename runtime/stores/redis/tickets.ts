import { RecyclingMap } from "../../base/recycling-map";
import type { EnqueueRequest } from "../port";
import type { Server } from "./server";

interface InboxName {
  /** The channel that notifies a waiter. Empty if there is none. */
  readonly inbox: string;
}

/** The inboxes with which a ticket may be in its queue. */
export interface Inboxes extends InboxName {
  /** The inbox with which the ticket is already in the queue. Empty if that is `inbox`, or if the ticket is not in the queue. */
  readonly formerInboxes: readonly string[];
}

export type AddressedRequest = EnqueueRequest & Inboxes;

/**
 * Remembers the inbox with which each ticket of this process is in its queue. An inbox may change during a wait. The process may learn
 * later that its user lacks permission for the channel, and in a cluster, a slot may move to another master. If a script did not know the
 * former inbox, it would enqueue the ticket a second time, and the old entry would block others after the waiter has left.
 */
export class Tickets {
  readonly #server: Server;
  readonly #all = new RecyclingMap<string, InboxName>();
  /** Most tickets share one inbox, so they share this object. There may be many tickets. */
  #last: InboxName = { inbox: "" };

  constructor(server: Server) {
    this.#server = server;
  }

  /** Adds the inbox of the waiter to its request. */
  addressed(request: EnqueueRequest): AddressedRequest {
    const { inbox, formerInboxes } = this.#inboxes(request.key, request.ticket);
    return { ...request, inbox, formerInboxes };
  }

  /** Records whether the ticket is in the queue with this inbox. */
  note(ticket: string, inbox: string, isQueued: boolean): void {
    if (!isQueued) return void this.#all.delete(ticket);
    if (this.#all.get(ticket)?.inbox === inbox) return;
    if (this.#last.inbox !== inbox) this.#last = { inbox };
    this.#all.set(ticket, this.#last);
  }

  /** Records that the ticket leaves the queue. Returns the inboxes with which it may be there. */
  forget(key: string, ticket: string): Inboxes {
    const inboxes = this.#inboxes(key, ticket);
    this.#all.delete(ticket);
    return inboxes;
  }

  /** Opens the inbox, unless the key cannot have a queue. */
  #inboxes(key: string, ticket: string): Inboxes {
    const inbox = this.#server.canQueue(key) ? this.#server.inbox.addressFor(key) : "";
    const former = this.#all.get(ticket);
    return { inbox, formerInboxes: former === undefined || former.inbox === inbox ? [] : [former.inbox] };
  }
}
