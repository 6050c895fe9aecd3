import { systemClock, type Clock } from "../../../base/clock";
import { inRoot, listenInRoot } from "../../../base/root-context";
import { loadUuid } from "../../../base/uuid";
import { Backoff } from "../backoff";
import type { RedisClient, RedisNode, RedisSubscriber } from "../client";
import { isDenied, isMoved, isUnaskedReply, isUnknownCommand } from "../errors";
import { Heartbeat } from "../heartbeat";
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
  subscription: Subscription | undefined;
  /** The pauses between attempts to subscribe. */
  readonly backoff: Backoff;
  readonly heartbeat: Heartbeat;
}

interface Subscription {
  readonly address: string;
  readonly subscriber: RedisSubscriber;
}

/**
 * Receives wake-ups in a cluster by sharded pub/sub. This process has one inbox for each master, in a slot of that master, and a connection
 * for each inbox. So other nodes do not see the wake-up, and a master knows how many subscribers received it.
 *
 * An inbox whose connection ended is not reopened by itself. Each waiter asks for its address at least once a second, and that reopens it.
 * If the server has no sharded pub/sub, or the user lacks permission for it, one plain inbox serves all locks.
 */
export class ShardInboxes implements WakeUpChannel {
  readonly #client: RedisClient;
  readonly #shards: Shards;
  readonly #owner: InboxOwner;
  readonly #clock: Clock;
  readonly #id = loadUuid()();
  readonly #inboxes: ShardInbox[] = [];
  #plain: Inbox | undefined;
  #isClosed = false;

  constructor(client: RedisClient, shards: Shards, owner: InboxOwner, clock = systemClock) {
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
    if (inbox.subscription?.address !== address && !inbox.backoff.isPending) {
      inRoot(() => this.#open(inbox, address));
    }
    inbox.heartbeat.needed();
    return inbox.name;
  }

  #newInbox(slot: number): ShardInbox {
    const inbox: ShardInbox = {
      name: shardInboxName(this.#id, keyIn(slot)),
      slot,
      subscription: undefined,
      backoff: new Backoff(this.#clock, () => this.#owner.shortestLeaseMs()),
      heartbeat: new Heartbeat(
        this.#clock,
        () => inbox.subscription?.subscriber.call("ping"),
        () => this.#replace(inbox),
      ),
    };
    return inbox;
  }

  /** Opens another subscription, because the current one does not answer. It replaces the current one once it is ready. */
  #replace(inbox: ShardInbox): void {
    if (inbox.subscription !== undefined) this.#open(inbox, inbox.subscription.address, inbox.subscription);
  }

  close(): void {
    this.#isClosed = true;
    for (const { subscription, backoff, heartbeat } of this.#inboxes) {
      backoff.stop();
      heartbeat.stop();
      subscription?.subscriber.disconnect();
    }
    this.#plain?.close();
  }

  /** @param dead a subscription that does not answer, and that is kept until the new one is ready */
  #open(inbox: ShardInbox, address: string, dead?: Subscription): void {
    const node: RedisNode | undefined = this.#shards.masterAt(address);
    if (node === undefined || this.#isClosed) return;
    if (dead === undefined) inbox.subscription?.subscriber.disconnect();
    const subscriber = node.duplicate({ autoResubscribe: false, keyPrefix: "" });
    const subscription = { address, subscriber };
    if (dead === undefined) inbox.subscription = subscription;
    const end = (): void => {
      if (inbox.subscription !== subscription || this.#isClosed) return;
      inbox.subscription = undefined;
      inbox.backoff.schedule(() => {});
    };
    // The slot of the inbox has moved. Commands for keys in other slots do not show that, so the client is asked to refresh its slots.
    const moved = (): void => {
      subscriber.disconnect();
      end();
      if (!this.#isClosed) this.#client.refreshSlotsCache?.();
    };
    listenInRoot(subscriber, {
      close() {
        subscriber.disconnect(); // It would reconnect by itself, without our subscription.
        end();
      },
      smessage: (_channel, ticket) => this.#owner.onWakeUp(ticket),
      // The server ends the subscription when the slot moves. ioredis 6 reports that with this event, and earlier versions with an error.
      moved,
      error(error: unknown) {
        if (isUnaskedReply(error)) moved();
      },
    });
    subscriber.call("ssubscribe", inbox.name).then(
      () => {
        // Meanwhile, the store was closed, or another replacement came first.
        const isUnwanted = this.#isClosed || (dead !== undefined && inbox.subscription !== dead);
        if (isUnwanted) return subscriber.disconnect();
        inbox.backoff.connected();
        if (dead !== undefined) {
          inbox.subscription = subscription;
          dead.subscriber.disconnect();
        }
        // Messages that were published before are lost, so all waiters ask again.
        this.#owner.onWakeUp(undefined);
      },
      (error: unknown) => {
        if (isMoved(error)) return moved();
        subscriber.disconnect();
        end();
        if (isUnknownCommand(error) || isDenied(error)) this.#fallBack();
      },
    );
  }

  #fallBack(): void {
    if (this.#plain !== undefined || this.#isClosed) return;
    this.#plain = new Inbox(this.#client, this.#owner);
    this.#plain.open();
  }
}
