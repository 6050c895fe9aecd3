import { RecyclingMap } from "../../recycling-map";

interface Inbox {
  readonly inbox: string;
}

/**
 * With which inbox the places of this process stand in their queues. An inbox may change while one waits: that the user has
 * no right to it is known only later, and in a cluster a slot may go to another master. Without its former inbox, a place
 * would be put in the queue a second time, and stand there in the way of others when it is left.
 */
export class Tickets {
  readonly #all = new RecyclingMap<string, Inbox>();
  /** That of most of them, since there may be many. */
  #last: Inbox = { inbox: "" };

  /** It stands in the queue. */
  stands(place: string, inbox: string): void {
    if (this.#all.get(place)?.inbox === inbox) return;
    if (this.#last.inbox !== inbox) this.#last = { inbox };
    this.#all.set(place, this.#last);
  }

  /** It stands nowhere any more. */
  left(place: string): void {
    this.#all.delete(place);
  }

  /** What goes to a script beside the inbox of now: the former one, where that is another. */
  before(place: string, inbox: string): readonly string[] {
    const former = this.#all.get(place);
    return former === undefined || former.inbox === inbox ? [] : [former.inbox];
  }
}
