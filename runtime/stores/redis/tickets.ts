import { RecyclingMap } from "../../base/recycling-map";

interface Inbox {
  readonly inbox: string;
}

/**
 * Remembers the inbox under which each ticket of this process is in its queue. An inbox may change during a wait. The process may learn
 * later that its user lacks permission for the channel, and in a cluster, a slot may move to another master. If a script did not know the
 * former inbox, it would enqueue the ticket a second time, and the old entry would block others after the waiter has left.
 */
export class Tickets {
  readonly #all = new RecyclingMap<string, Inbox>();
  /** Most tickets share one inbox, so they share this object. There may be many tickets. */
  #last: Inbox = { inbox: "" };

  /** Records that the ticket is in the queue with this inbox. */
  enqueued(ticket: string, inbox: string): void {
    if (this.#all.get(ticket)?.inbox === inbox) return;
    if (this.#last.inbox !== inbox) this.#last = { inbox };
    this.#all.set(ticket, this.#last);
  }

  /** Records that the ticket is in no queue. */
  dequeued(ticket: string): void {
    this.#all.delete(ticket);
  }

  /** Returns the extra argument for a script: the former inbox of the ticket, or nothing if the inbox has not changed. */
  formerInbox(ticket: string, inbox: string): readonly string[] {
    const former = this.#all.get(ticket);
    return former === undefined || former.inbox === inbox ? [] : [former.inbox];
  }
}
