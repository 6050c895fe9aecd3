import { systemClock, type Clock } from "../../../base/clock";
import { Latch } from "../../../base/latch";
import { inRoot } from "../../../base/root-context";
import { loadUuid } from "../../../base/uuid";
import { Backoff } from "../../connection/backoff";
import { Heartbeat } from "../../connection/heartbeat";
import type { ClusterPort, Subscription } from "../client-port";
import { isDenied, isMoved, isUnknownCommand } from "../errors";
import { Inbox, type WakeUpChannel, type InboxOwner } from "../inbox";
import { shardInboxName } from "../keys";
import type { Shards } from "./shards";
import { keyIn } from "./slots";

/** The channel for the wake-ups of locks of one master. */
interface ShardInbox {
  readonly name: string;
  /** The slot of the channel. The master of this slot serves the channel. */
  readonly slot: number;
  /** The connection that subscribes to the channel, with the address of its master. */
  subscribed: Subscribed | undefined;
  /** The pauses between attempts to subscribe. */
  readonly backoff: Backoff;
  readonly heartbeat: Heartbeat;
  /** Opens when the server has confirmed or refused the channel. */
  readonly answer: Latch;
}

interface Subscribed {
  readonly address: string;
  readonly subscription: Subscription;
}

/**
 * Receives wake-ups in a cluster by sharded pub/sub. This process has one inbox for each master, in a slot of that master, and a connection
 * for each inbox. So other nodes do not see the wake-up, and a master knows how many subscribers received it.
 *
 * An inbox whose connection ended is not reopened by itself. Each waiter asks for its address at least once a second, and that reopens it.
 * If the server has no sharded pub/sub, or the user lacks permission for it, one plain inbox serves all locks.
 */
export class ShardInboxes implements WakeUpChannel {
  readonly #client: ClusterPort;
  readonly #shards: Shards;
  readonly #owner: InboxOwner;
  readonly #clock: Clock;
  readonly #id = loadUuid()();
  readonly #inboxes: ShardInbox[] = [];
  #plain: Inbox | undefined;
  #isClosed = false;

  constructor(client: ClusterPort, shards: Shards, owner: InboxOwner, clock = systemClock) {
    this.#client = client;
    this.#shards = shards;
    this.#owner = owner;
    this.#clock = clock;
  }

  addressFor(key: string): string {
    if (this.#plain !== undefined) return this.#plain.addressFor();
    const slot = this.#shards.slotOf(key);
    const address = this.#shards.addressOf(slot);
    if (address === undefined) return "";
    // An inbox is found by its slot, and not by its node. So it keeps its name after a failover.
    let inbox = this.#inboxes.find((one) => this.#shards.addressOf(one.slot) === address);
    if (inbox === undefined) {
      inbox = this.#newInbox(slot);
      this.#inboxes.push(inbox);
    }
    inbox.backoff.hurry();
    if (inbox.subscribed?.address !== address && !inbox.backoff.isPending) {
      inRoot(() => this.#open(inbox, address));
    }
    inbox.heartbeat.needed();
    return inbox.name;
  }

  async answered(): Promise<void> {
    await Promise.all(this.#inboxes.map(({ answer }) => answer.opened));
    await this.#plain?.answered();
  }

  get isDenied(): boolean {
    return this.#plain?.isDenied === true;
  }

  #newInbox(slot: number): ShardInbox {
    const inbox: ShardInbox = {
      name: shardInboxName(this.#id, keyIn(slot)),
      slot,
      subscribed: undefined,
      answer: new Latch(),
      backoff: new Backoff(this.#clock, () => this.#owner.shortestTimeLeftMs()),
      heartbeat: new Heartbeat(
        this.#clock,
        () => inbox.subscribed?.subscription.ping(),
        () => this.#replace(inbox),
      ),
    };
    return inbox;
  }

  /** Opens another subscription, because the current one does not answer. It replaces the current one once it is ready. */
  #replace(inbox: ShardInbox): void {
    if (inbox.subscribed !== undefined) this.#open(inbox, inbox.subscribed.address, inbox.subscribed);
  }

  close(): void {
    this.#isClosed = true;
    for (const { subscribed, backoff, heartbeat } of this.#inboxes) {
      backoff.stop();
      heartbeat.stop();
      subscribed?.subscription.close();
    }
    this.#plain?.close();
  }

  /** @param dead a subscription that does not answer, and that is kept until the new one is ready */
  #open(inbox: ShardInbox, address: string, dead?: Subscribed): void {
    const node = this.#shards.masterAt(address);
    if (node === undefined || this.#isClosed) return;
    if (dead === undefined) inbox.subscribed?.subscription.close();
    const { topology } = this.#client;
    const end = (): void => {
      if (inbox.subscribed !== subscribed || this.#isClosed) return;
      inbox.subscribed = undefined;
      inbox.backoff.schedule(() => {});
    };
    // The slot of the inbox has moved. Commands for keys in other slots do not show that, so the client is asked to refresh its slots.
    const moved = (): void => {
      subscription.close();
      end();
      if (!this.#isClosed) topology.refresh();
    };
    const subscription = topology.openSubscription(node, inbox.name, {
      subscribed: () => {
        // Meanwhile, the store was closed, or another replacement came first.
        const isUnwanted = this.#isClosed || (dead !== undefined && inbox.subscribed !== dead);
        if (isUnwanted) return subscription.close();
        inbox.backoff.connected();
        inbox.answer.open();
        if (dead !== undefined) {
          inbox.subscribed = subscribed;
          dead.subscription.close();
        }
        // Messages that were published before are lost, so all waiters ask again.
        this.#owner.onWakeUp(undefined);
      },
      message: (ticket) => this.#owner.onWakeUp(ticket),
      failed: (error) => {
        if (isMoved(error)) return moved();
        subscription.close();
        end();
        if (!isUnknownCommand(error) && !isDenied(error)) return;
        this.#fallBack();
        inbox.answer.open();
      },
      moved,
      ended: end,
    });
    const subscribed: Subscribed = { address, subscription };
    if (dead === undefined) inbox.subscribed = subscribed;
  }

  #fallBack(): void {
    if (this.#plain !== undefined || this.#isClosed) return;
    this.#plain = new Inbox(this.#client, this.#owner);
    this.#plain.open();
  }
}
