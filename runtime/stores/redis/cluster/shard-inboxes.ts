import { systemClock } from "../../../clock";
import { inRoot, listenInRoot } from "../../../root-context";
import { loadUuid } from "../../../uuid";
import { Backoff } from "../backoff";
import type { RedisClient, RedisNode, RedisSubscriber } from "../client";
import { isDenied, isMoved, isUnaskedReply, isUnknownCommand } from "../errors";
import { Heartbeat } from "../heartbeat";
import { Inbox, type WakeUpChannel, type InboxOwner } from "../inbox";
import { shardInboxName } from "../keys";
import type { Shards } from "./shards";
import { keyIn } from "./slots";

/** Where hints are heard from the locks of one master. */
interface ShardInbox {
  readonly name: string;
  /** It lies where this slot lies. */
  readonly slot: number;
  /** Whose connection it hears on, and where that is. */
  ear: Ear | undefined;
  /** Between two attempts to hear there. */
  readonly backoff: Backoff;
  readonly heartbeat: Heartbeat;
}

interface Ear {
  readonly address: string;
  readonly subscriber: RedisSubscriber;
}

/**
 * Hints in a cluster, by sharded pub/sub: each master has an inbox of this process, in a slot of its own, and tells it on
 * a connection of its own. So a hint is no business of the other nodes, and a master knows who hears.
 *
 * Nobody watches whether an inbox is still heard: who waits asks for its address once a second at least, and then it is
 * opened anew where it has to be. Where the server, or its user's rights, know no sharded pub/sub, one inbox is for all.
 */
export class ShardInboxes implements WakeUpChannel {
  readonly #client: RedisClient;
  readonly #shards: Shards;
  readonly #owner: InboxOwner;
  readonly #id = loadUuid()();
  readonly #inboxes: ShardInbox[] = [];
  #plain: Inbox | undefined;
  #isClosed = false;

  constructor(client: RedisClient, shards: Shards, owner: InboxOwner) {
    this.#client = client;
    this.#shards = shards;
    this.#owner = owner;
  }

  addressFor(key: string): string {
    if (this.#plain !== undefined) return this.#plain.addressFor();
    const slot = this.#shards.slotOf(key);
    const address = this.#shards.addressOf(slot);
    if (address === undefined) return "";
    // By its slot, and not by its node: after a fail-over its name is the same.
    let inbox = this.#inboxes.find((one) => this.#shards.addressOf(one.slot) === address);
    if (inbox === undefined) {
      inbox = this.#newInbox(slot);
      this.#inboxes.push(inbox);
    }
    if (inbox.ear?.address !== address && !inbox.backoff.isPending) {
      inRoot(() => this.#open(inbox, address));
    }
    inbox.heartbeat.needed();
    return inbox.name;
  }

  #newInbox(slot: number): ShardInbox {
    const inbox: ShardInbox = {
      name: shardInboxName(this.#id, keyIn(slot)),
      slot,
      ear: undefined,
      backoff: new Backoff(systemClock, () => this.#owner.shortestLeaseMs()),
      heartbeat: new Heartbeat(
        systemClock,
        () => inbox.ear?.subscriber.call("ping"),
        () => this.#replace(inbox),
      ),
    };
    return inbox;
  }

  /** It does not answer: another one takes its place once that one hears. */
  #replace(inbox: ShardInbox): void {
    if (inbox.ear !== undefined) this.#open(inbox, inbox.ear.address, inbox.ear);
  }

  close(): void {
    this.#isClosed = true;
    for (const { ear, backoff, heartbeat } of this.#inboxes) {
      backoff.stop();
      heartbeat.stop();
      ear?.subscriber.disconnect();
    }
    this.#plain?.close();
  }

  /** @param dead one that stays until the new one hears */
  #open(inbox: ShardInbox, address: string, dead?: Ear): void {
    const node: RedisNode | undefined = this.#shards.masterAt(address);
    if (node === undefined || this.#isClosed) return;
    if (dead === undefined) inbox.ear?.subscriber.disconnect();
    const subscriber = node.duplicate({ autoResubscribe: false, keyPrefix: "" });
    const ear = { address, subscriber };
    if (dead === undefined) inbox.ear = ear;
    const end = (): void => {
      if (inbox.ear !== ear || this.#isClosed) return;
      inbox.ear = undefined;
      inbox.backoff.schedule(() => {});
    };
    // Whoever waits for keys of other slots only would not hear by them that this one has gone elsewhere.
    const moved = (): void => {
      subscriber.disconnect();
      end();
      if (!this.#isClosed) this.#client.refreshSlotsCache?.();
    };
    listenInRoot(subscriber, {
      close() {
        subscriber.disconnect(); // It would come back without us.
        end();
      },
      smessage: (_channel, place) => this.#owner.hinted(place),
      // A server ends the subscription unasked then: so a client tells it, and those before ioredis 6 as an error of theirs.
      moved,
      error(error: unknown) {
        if (isUnaskedReply(error)) moved();
      },
    });
    subscriber.call("ssubscribe", inbox.name).then(
      () => {
        inbox.backoff.connected();
        if (dead !== undefined && inbox.ear === dead) {
          inbox.ear = ear;
          dead.subscriber.disconnect();
        }
        // What was published before is gone: everybody looks again.
        this.#owner.hinted(undefined);
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
