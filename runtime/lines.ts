import { Batch } from "./batch";
import type { Clock } from "./clock";
import { Commands } from "./commands";
import type { Lease } from "./lease";
import { Line } from "./line";
import type { Lock } from "./lock";
import type { Release } from "./release";
import { Renewals } from "./renewals";
import { Roster } from "./roster";
import type { AcquireReply, Released, Store } from "./store";
import type { Story } from "./story";
import type { Ticket, Try } from "./ticket";

/**
 * Who in this process waits for keys and who holds them. In each line: first come, first served. Only the
 * first in line asks the store, for all behind it, so a crowd costs no more than one caller does. A release
 * hands the lock on: to the next in line, and now and then, so that no process starves, through the store's
 * queue to another process.
 */
export class Lines {
  readonly clock: Clock;
  readonly store: Store;
  readonly commands: Commands;
  /** What asks for keys, and gives them back, goes together. */
  readonly acquires: Batch<Try, AcquireReply>;
  readonly releases: Batch<Release, Released>;
  readonly renewals: Renewals;
  /** Releases under way that no caller waits for. */
  readonly givingBack = new Set<Promise<void>>();
  /** Set by `shutdown()`: no lock is given any more. */
  closing = false;
  /** Called when nobody holds a lock or stands in a line any more. */
  onIdle: (() => void) | undefined;
  readonly #lines = new Roster<string, Line>();
  /** Tickets with a place in the store's queue, by their `requestId`. */
  readonly #queued = new Roster<string, Ticket>();
  readonly #deafen: () => void;

  constructor(clock: Clock, store: Store, commandTimeoutMs: number, story: Story) {
    this.clock = clock;
    this.store = store;
    this.commands = new Commands(clock, commandTimeoutMs);
    const { acquireMany, releaseMany } = store;
    this.acquires = new Batch(
      this.commands,
      acquireMany &&
        ((tries) =>
          acquireMany.call(
            store,
            tries.map(({ request }) => request),
          )),
    );
    this.releases = new Batch(
      this.commands,
      releaseMany &&
        ((releases) =>
          releaseMany.call(
            store,
            releases.map(({ lease }) => lease),
          )),
    );
    this.renewals = new Renewals(clock, store, this.commands, story, () => this.#leases());
    this.#deafen = store.listen((requestId) => this.#hint(requestId));
  }

  /** Puts the lock at the end of the line for its key. */
  join(lock: Lock): Line {
    let line = this.#lines.get(lock.key);
    if (line === undefined) this.#lines.set(lock.key, (line = new Line(this, lock.key)));
    line.join(lock);
    return line;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  *holders(): Iterable<Lock> {
    for (const { holder } of this.#leases()) if (holder !== undefined) yield holder;
  }

  *#leases(): Iterable<Lease> {
    for (const { holder } of this.#lines.values()) if (holder !== undefined) yield holder;
  }

  /** No lock is given any more, and those who wait wake up to be told so. */
  close(): void {
    this.closing = true;
    this.#deafen();
    for (const line of this.#lines.values()) for (const lock of line.waiting()) lock.wake();
  }

  remove(line: Line): void {
    if (this.#lines.get(line.key) === line) this.#lines.delete(line.key);
    if (this.isEmpty) this.onIdle?.();
  }

  listenFor(ticket: Ticket): void {
    this.#queued.set(ticket.requestId, ticket);
  }

  listenNoMoreFor(ticket: Ticket): void {
    this.#queued.delete(ticket.requestId);
  }

  /** Sends what nobody waits for: when it fails, the key expires by itself. */
  giveBack(send: () => Promise<unknown>): void {
    const attempt = async (): Promise<void> => void (await send());
    const done = attempt()
      .catch(() => {})
      .finally(() => this.givingBack.delete(done));
    this.givingBack.add(done);
  }

  #hint(requestId: string | undefined): void {
    if (requestId !== undefined) this.#queued.get(requestId)?.hint();
    else for (const ticket of this.#queued.values()) ticket.hint();
  }
}
