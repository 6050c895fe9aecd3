import { inRoot, listenInRoot } from "../../root-context";
import { loadUuid } from "../../uuid";
import { isCluster, type RedisClient, type RedisNode, type RedisSubscriber } from "./client";
import { isDenied } from "./errors";
import { inboxName } from "./keys";

/** Whom an inbox tells. */
export interface InboxOwner {
  /** Somebody who waits should look again: the one at that place, or everybody. */
  hinted(place: string | undefined): void;
  /** The user of the client has no right to the channel. */
  denied(): void;
}

/** Where a store hears hints. */
export interface Ears {
  /** Where those who wait for the key can be told. Empty where it is known that they cannot. Also opens it. */
  addressFor(key: string): string;
  close(): void;
}

/** The channel on which a store hears hints, over a second connection that is opened when somebody first waits. */
export class Inbox implements Ears {
  readonly #client: RedisClient;
  readonly #owner: InboxOwner;
  readonly #name = inboxName(loadUuid()());
  #subscriber: RedisSubscriber | undefined;
  #isDenied = false;
  #isClosed = false;

  constructor(client: RedisClient, owner: InboxOwner) {
    this.#client = client;
    this.#owner = owner;
  }

  addressFor(): string {
    this.open();
    return this.#isDenied ? "" : this.#name;
  }

  open(): void {
    if (this.#subscriber === undefined && !this.#isClosed) inRoot(() => this.#subscribe());
  }

  #subscribe(): void {
    // We subscribe ourselves on each "ready". A `Redis` would too, and leave a failure of that to nobody.
    const client: RedisNode = this.#client;
    const subscriber = isCluster(client) ? client.duplicate() : client.duplicate({ autoResubscribe: false });
    this.#subscriber = subscriber;
    const subscribe = (): void => {
      subscriber.subscribe(this.#name).then(
        () => {
          this.#isDenied = false;
          // What was published while the connection was down, or not yet up, is gone: everybody looks again.
          this.#owner.hinted(undefined);
        },
        (error: unknown) => {
          if (!isDenied(error)) return;
          this.#isDenied = true;
          this.#owner.denied();
        },
      );
    };
    listenInRoot(subscriber, {
      error() {}, // Who hears nothing still looks again in time.
      message: (_channel, place) => this.#owner.hinted(place),
      // One that hears of a new master while it looks for one has ended for good: the next who waits opens another.
      end: () => {
        if (this.#subscriber === subscriber) this.#subscriber = undefined;
      },
      ready: subscribe,
      // A `Cluster` hears on a node of its choice, and tells of none but new ones.
      ...(isCluster(client) && { "+node": subscribe }),
    });
    subscriber.subscribe(this.#name).catch(() => {}); // A client with `lazyConnect` connects for it.
  }

  close(): void {
    this.#isClosed = true;
    this.#subscriber?.disconnect();
  }
}
