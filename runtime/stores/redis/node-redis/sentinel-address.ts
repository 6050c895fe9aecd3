import { systemClock } from "../../../base/clock";
import { Backoff } from "../../connection/backoff";
import type { Subscription } from "../client-port";
import { isReply } from "../errors";
import { discard } from "./address-source";
import type { HostAndPort, NodeRedis } from "./client";
import { openSubscription, PrivateConnection, type Place } from "./connection";
import { portError } from "./errors";
import type { Source } from "./source";

/** The options in a `redis+sentinel://` URL, as clients that never connect. The connections are duplicates of them. */
export interface SentinelTemplates {
  /** Has the options of a connection to the master, without its address. */
  readonly master: NodeRedis;
  /** Has the options of a connection to a sentinel, without its address. */
  readonly sentinel: NodeRedis;
  readonly hosts: readonly HostAndPort[];
  /** The name of the master. */
  readonly name: string;
}

/**
 * The master that the sentinels of an address name. `createSentinel()` of node-redis would repeat commands, and may stop looking for a
 * master, so the store asks the sentinels itself.
 */
export class SentinelAddress implements Source {
  readonly keyPrefix = "";
  readonly isOpen = true;
  readonly name = undefined;
  readonly #templates: SentinelTemplates;
  readonly #watches: readonly SentinelWatch[];
  readonly #listeners = new Set<() => void>();
  /** The address of the master, as a sentinel named it last. */
  #found: HostAndPort | undefined;

  /** @param shortestTimeLeftMs returns the shortest time left of all leases and waiters */
  constructor(templates: SentinelTemplates, shortestTimeLeftMs: () => number) {
    this.#templates = templates;
    this.#watches = templates.hosts.map(
      (address) =>
        new SentinelWatch({ client: templates.sentinel, address }, shortestTimeLeftMs, {
          changed: (name) => name === templates.name && this.#moved(),
          subscribed: (sentinel) => void this.#compare(sentinel),
        }),
    );
  }

  /** Asks all sentinels at once, because one of them may be silent. The first answer counts. */
  async locate(): Promise<Place> {
    const asked = this.#watches.map(({ sentinel }) => new Inquiry(sentinel));
    try {
      this.#found = await Promise.any(asked.map((inquiry) => inquiry.masterOf(this.#templates.name)));
    } catch (error) {
      throw mostTelling((error as AggregateError).errors);
    } finally {
      for (const inquiry of asked) inquiry.close();
    }
    for (const watch of this.#watches) watch.open();
    return { client: this.#templates.master, address: this.#found };
  }

  accepts(role: unknown): boolean {
    return role === "master";
  }

  doubt(): void {} // Each attempt to connect asks the sentinels.

  onMoved(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
    discard(this.#templates.master);
    discard(this.#templates.sentinel);
  }

  #moved(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Asks a sentinel whether the master has changed before the sentinel could report that. */
  async #compare(sentinel: Place): Promise<void> {
    const inquiry = new Inquiry(sentinel);
    const master = await inquiry.masterOf(this.#templates.name).catch(() => this.#found);
    inquiry.close();
    if (master?.host !== this.#found?.host || master?.port !== this.#found?.port) this.#moved();
  }
}

/** A connection that asks one sentinel for the master. */
class Inquiry {
  readonly #connection: PrivateConnection;

  constructor(sentinel: Place) {
    this.#connection = new PrivateConnection(sentinel, undefined, () => {});
  }

  async masterOf(name: string): Promise<HostAndPort> {
    const [reply] = await this.#connection.exec([["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]]);
    if (reply instanceof Error) throw reply;
    if (!Array.isArray(reply)) throw new UnknownMaster(`the sentinels know no master named ${name}`);
    const [host, port] = reply.map(String);
    return { host: host ?? "", port: Number(port) };
  }

  close(): void {
    this.#connection.close();
  }
}

class UnknownMaster extends Error {}

/** Returns the error that a person can act on. The others are often only broken connections. */
function mostTelling(errors: readonly unknown[]): unknown {
  const isTelling = (error: unknown): boolean => error instanceof UnknownMaster || isReply(portError(error));
  return errors.find(isTelling) ?? errors[0];
}

interface SentinelListeners {
  /** The sentinel reports that the master with this name is another one now. */
  changed(name: string | undefined): void;
  subscribed(sentinel: Place): void;
}

/** Subscribes to what one sentinel reports. A master that hangs or is isolated does not break its connection. */
class SentinelWatch {
  readonly sentinel: Place;
  readonly #listeners: SentinelListeners;
  readonly #backoff: Backoff;
  #subscription: Subscription | undefined;
  #isClosed = false;

  constructor(sentinel: Place, shortestTimeLeftMs: () => number, listeners: SentinelListeners) {
    this.sentinel = sentinel;
    this.#listeners = listeners;
    this.#backoff = new Backoff(systemClock, shortestTimeLeftMs);
  }

  open(): void {
    if (this.#subscription !== undefined || this.#isClosed || this.#backoff.isPending) return;
    this.#subscription = openSubscription(this.sentinel, "+switch-master", {
      subscribed: () => {
        this.#backoff.connected();
        this.#listeners.subscribed(this.sentinel);
      },
      message: (text) => this.#listeners.changed(text.split(" ")[0]),
      failed: () => {}, // Without permission to subscribe, a master that hangs goes unnoticed until its connection breaks.
      ended: () => {
        this.#subscription = undefined;
        if (!this.#isClosed) this.#backoff.schedule(() => this.open());
      },
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#subscription?.close();
  }
}
