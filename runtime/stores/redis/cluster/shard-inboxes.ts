import { inRoot, listenInRoot } from "../../../root-context";
import { loadUuid } from "../../../uuid";
import type { RedisClient, RedisNode, RedisSubscriber } from "../client";
import { isDenied, isMoved, isUnaskedReply, isUnknownCommand } from "../errors";
import { Inbox, type Ears, type InboxOwner } from "../inbox";
import { shardInboxName } from "../keys";
import type { Shards } from "./shards";
import { keyIn } from "./slots";

/** Where hints are heard from the locks of one master. */
interface ShardInbox {
  readonly name: string;
  /** It lies where this slot lies. */
  readonly slot: number;
  /** Whose connection it hears on, and where that is. */
  ear: { readonly address: string; readonly subscriber: RedisSubscriber } | undefined;
}

/**
 * Hints in a cluster, by sharded pub/sub: each master has an inbox of this process, in a slot of its own, and tells it on
 * a connection of its own. So a hint is no business of the other nodes, and a master knows who hears.
 *
 * Nobody watches whether an inbox is still heard: who waits asks for its address once a second at least, and then it is
 * opened anew where it has to be. Where the server, or its user's rights, know no sharded pub/sub, one inbox is for all.
 */
export class ShardInboxes implements Ears {
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
      inbox = { name: shardInboxName(this.#id, keyIn(slot)), slot, ear: undefined };
      this.#inboxes.push(inbox);
    }
    if (inbox.ear?.address !== address) inRoot(() => this.#open(inbox, address));
    return inbox.name;
  }

  close(): void {
    this.#isClosed = true;
    for (const { ear } of this.#inboxes) ear?.subscriber.disconnect();
    this.#plain?.close();
  }

  #open(inbox: ShardInbox, address: string): void {
    const node: RedisNode | undefined = this.#shards.masterAt(address);
    if (node === undefined || this.#isClosed) return;
    inbox.ear?.subscriber.disconnect();
    const subscriber = node.duplicate({ autoResubscribe: false, keyPrefix: "" });
    const ear = { address, subscriber };
    inbox.ear = ear;
    const end = (): void => {
      if (inbox.ear === ear) inbox.ear = undefined;
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
      // What was published before is gone: everybody looks again.
      () => this.#owner.hinted(undefined),
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
