import { systemClock } from "../../clock";
import { inRoot, listenInRoot } from "../../root-context";
import { loadUuid } from "../../uuid";
import { Backoff } from "./backoff";
import { isCluster, type RedisClient, type RedisNode, type RedisSubscriber } from "./client";
import { isDenied } from "./errors";
import { Heartbeat } from "./heartbeat";
import { inboxName } from "./keys";

/** Whom an inbox tells. */
export interface InboxOwner {
  /** Somebody who waits should look again: the one at that place, or everybody. */
  hinted(place: string | undefined): void;
  /** The user of the client has no right to the channel. */
  denied(): void;
  /** The shortest time left of a held lease, in milliseconds: reconnects wait no longer than a third of it. */
  shortestLeaseMs(): number;
}

/** Where a store hears hints. */
export interface WakeUpChannel {
  /** Where those who wait for the key can be told. Empty where it is known that they cannot. Also opens it. */
  addressFor(key: string): string;
  close(): void;
}

/** The channel on which a store hears hints, over a second connection that is opened when somebody first waits. */
export class Inbox implements WakeUpChannel {
  readonly #client: RedisClient;
  readonly #owner: InboxOwner;
  readonly #name = inboxName(loadUuid()());
  readonly #backoff: Backoff;
  readonly #heartbeat: Heartbeat;
  #subscriber: RedisSubscriber | undefined;
  /** Takes the place of the subscriber that does not answer, if it answers itself. */
  #spare: RedisSubscriber | undefined;
  #isDenied = false;
  #isClosed = false;

  constructor(client: RedisClient, owner: InboxOwner) {
    this.#client = client;
    this.#owner = owner;
    this.#backoff = new Backoff(systemClock, () => owner.shortestLeaseMs());
    this.#heartbeat = new Heartbeat(
      systemClock,
      () => this.#ping(),
      () => this.#openSpare(),
    );
  }

  addressFor(): string {
    this.open();
    this.#heartbeat.needed();
    return this.#isDenied ? "" : this.#name;
  }

  open(): void {
    if (this.#subscriber !== undefined || this.#isClosed || this.#backoff.isPending) return;
    inRoot(() => (this.#subscriber = this.#connect()));
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#heartbeat.stop();
    this.#subscriber?.disconnect();
    this.#spare?.disconnect();
  }

  /** A `Cluster` pings a node of its choice, which need not be the one it hears on. */
  #ping(): Promise<unknown> | undefined {
    return isCluster(this.#client) ? undefined : this.#subscriber?.call("ping");
  }

  #openSpare(): void {
    this.#spare?.disconnect();
    this.#spare = this.#connect();
  }

  #connect(): RedisSubscriber {
    // We subscribe ourselves on each "ready". A `Redis` would too, and leave a failure of that to nobody.
    const client: RedisNode = this.#client;
    const subscriber = isCluster(client) ? client.duplicate() : client.duplicate({ autoResubscribe: false });
    const subscribe = (): void => {
      subscriber.subscribe(this.#name).then(
        () => this.#subscribed(subscriber),
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
      // One that never connects again by itself is replaced after a pause.
      end: () => this.#ended(subscriber),
      ready: subscribe,
      // A `Cluster` hears on a node of its choice, and tells of none but new ones.
      ...(isCluster(client) && { "+node": subscribe }),
    });
    subscriber.subscribe(this.#name).catch(() => {}); // A client with `lazyConnect` connects for it.
    return subscriber;
  }

  #subscribed(subscriber: RedisSubscriber): void {
    this.#isDenied = false;
    this.#backoff.connected();
    if (subscriber === this.#spare) {
      const dead = this.#subscriber;
      this.#subscriber = subscriber;
      this.#spare = undefined;
      dead?.disconnect();
    }
    // What was published while the connection was down, or not yet up, is gone: everybody looks again.
    this.#owner.hinted(undefined);
  }

  #ended(subscriber: RedisSubscriber): void {
    if (this.#spare === subscriber) this.#spare = undefined;
    if (this.#subscriber !== subscriber || this.#isClosed) return;
    this.#subscriber = undefined;
    this.#backoff.schedule(() => this.open());
  }
}
