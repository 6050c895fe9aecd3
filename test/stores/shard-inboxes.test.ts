import test from "ava";
import type {
  ClusterPort,
  Subscription,
  SubscriptionListeners,
} from "../../runtime/stores/redis/client-port";
import { ShardInboxes } from "../../runtime/stores/redis/cluster/shard-inboxes";
import type { Shards } from "../../runtime/stores/redis/cluster/shards";
import { VirtualClock } from "../support/virtual-clock";

// An inbox connection that does not reply, and its replacements. Real connections reply in no fixed order.

const ADDRESS = "127.0.0.1:7000";

class Connection implements Subscription {
  isOpen = true;
  readonly #listeners: SubscriptionListeners;

  constructor(listeners: SubscriptionListeners) {
    this.#listeners = listeners;
  }

  /** Never replies. */
  ping(): Promise<unknown> {
    return new Promise(() => {});
  }

  subscribe(): void {
    this.#listeners.subscribed();
  }

  close(): void {
    this.isOpen = false;
  }
}

function inboxes(clock: VirtualClock): { readonly own: ShardInboxes; readonly connections: Connection[] } {
  const connections: Connection[] = [];
  const topology = {
    openSubscription(_node: unknown, _channel: string, listeners: SubscriptionListeners): Subscription {
      const connection = new Connection(listeners);
      connections.push(connection);
      return connection;
    },
  };
  const shards = {
    slotOf: () => 7,
    addressOf: () => ADDRESS,
    masterAt: () => ({ address: ADDRESS, database: 0 }),
  };
  const owner = { onWakeUp() {}, onDenied() {}, shortestTimeLeftMs: () => Infinity };
  const own = new ShardInboxes(
    { topology } as unknown as ClusterPort,
    shards as unknown as Shards,
    owner,
    clock,
  );
  return { own, connections };
}

/** Keeps a waiter active, so that each interval sends a ping. */
async function waitFor(own: ShardInboxes, clock: VirtualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    own.addressFor("LOCK_a");
    await clock.advance(1_000);
  }
}

test("if two connections replace a silent one, only the first that subscribes stays open", async (t) => {
  const clock = new VirtualClock();
  const { own, connections } = inboxes(clock);
  own.addressFor("LOCK_a");
  connections[0]?.subscribe();
  await waitFor(own, clock, 45);
  t.true(connections.length >= 3, `${connections.length} connections`);
  for (const connection of connections.slice(1)) {
    connection.subscribe();
    await clock.settle();
  }
  t.is(connections.filter(({ isOpen }) => isOpen).length, 1);
  own.close();
  t.is(connections.filter(({ isOpen }) => isOpen).length, 0);
});

test("a replacement that subscribes after close() is also closed", async (t) => {
  const clock = new VirtualClock();
  const { own, connections } = inboxes(clock);
  own.addressFor("LOCK_a");
  connections[0]?.subscribe();
  await waitFor(own, clock, 25);
  own.close();
  for (const connection of connections) connection.subscribe();
  await clock.settle();
  t.deepEqual(
    connections.map(({ isOpen }) => isOpen),
    connections.map(() => false),
  );
});
