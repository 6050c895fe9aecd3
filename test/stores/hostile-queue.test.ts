import test from "ava";
import * as fc from "fast-check";
import { untilListening } from "../store-contract";
import {
  release,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  acquire,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { queueOf } from "../support/auxiliary-keys";
import { startRedis, type RedisServer } from "../support/redis-server";

// Another program with write access to the queue of a lock can add members that Lockweave did not write.

let server: RedisServer;
let admin: ReturnType<RedisServer["client"]>;
let store: WholeStore;
/** The channels of all messages since the last reset. */
const published = new Set<string>();
let sentinel = (): void => {};

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  store = redisStore(server.client());
  await untilListening(store);
  const observer = server.client();
  observer.on("pmessage", (_pattern: string, channel: string) => {
    if (channel === "sentinel") sentinel();
    else published.add(channel);
  });
  await observer.psubscribe("*");
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** Returns the channels of all messages so far. */
async function channels(): Promise<readonly string[]> {
  const heard = new Promise<void>((resolve) => (sentinel = resolve));
  await admin.publish("sentinel", "");
  await heard;
  return [...published];
}

const hex = fc.stringMatching(/^[\da-f]{32}$/);
const channel = fc.oneof(
  fc.constantFrom("billing:events", "lockweave", "lockweave:1:queue:{LOCK_a}", "lockweave:1:inbox:a", " "),
  fc.string({ minLength: 1 }),
);
const member = fc
  .oneof(
    fc.tuple(hex, channel).map(([id, inbox]) => `${id} ${inbox}`),
    fc.tuple(fc.string({ minLength: 32, maxLength: 32 }), channel).map(([id, inbox]) => `${id} ${inbox}`),
    fc.tuple(hex, channel).map(([id, inbox]) => `${id}${inbox}`),
    fc.string({ minLength: 1 }),
  )
  .filter((text) => !/^[\da-f]{32} (?:lockweave:1:inbox:.*)?$/is.test(text));

/** Adds the members to the queue in front of the waiter. */
async function putInFront(key: string, members: readonly string[]): Promise<void> {
  const ends = -(Date.now() + 60_000) * 1_000;
  for (const [index, one] of members.entries()) {
    await admin.zadd(queueOf(key), 0.001 * (index + 1), one, ends, `-${one}`);
  }
}

/** Each way in which a waiter gets the key. */
const WAYS: Readonly<Record<string, (key: string, holder: string, waiter: string) => Promise<unknown>>> = {
  drop: (key, holder) => release(store, key, holder),
  releaseMany: async (key, requestId) => await store.batch?.releaseMany([{ key, requestId }], TIMEOUT_MS),
  next: (key, requestId) =>
    store.queue.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS),
  async place(key) {
    await admin.del(key);
    await enqueue(store, key, newId());
  },
  async leave(key) {
    const reserved = newId();
    await admin.set(key, reservedFor(reserved), "PX", 60_000);
    await store.queue.dequeue(key, reserved, TIMEOUT_MS);
  },
  async "drop of a shared lock"(key) {
    const requestId = newId();
    await admin.del(key);
    await acquire(store, key, requestId, { permits: 3 });
    await release(store, key, requestId);
  },
};

for (const [way, passOn] of Object.entries(WAYS)) {
  test.serial(
    `${way}: skips foreign members of the queue, and publishes nothing on their channels`,
    async (t) => {
      await fc.assert(
        fc.asyncProperty(fc.array(member, { minLength: 1, maxLength: 4 }), async (members) => {
          const [key, holder, waiter] = [newKey(), newId(), newId()];
          await acquire(store, key, holder);
          await queued(store, key, waiter);
          await putInFront(key, members);
          published.clear();
          await passOn(key, holder, waiter);
          t.is(await peek(store, key), reservedFor(waiter));
          const foreign = (await channels()).filter((name) => !name.startsWith("lockweave:1:inbox:"));
          t.deepEqual(foreign, []);
        }),
        { numRuns: 40 },
      );
    },
  );
}
