import type { Redis } from "ioredis";
import test, { type ExecutionContext } from "ava";
import { startChild } from "../support/child";
import { startRedis } from "../support/redis-server";
import { until } from "../support/until";
import type { WaitersConfiguration, WaitersReport } from "./children/waiters";

// A thousand callers in one process wait in vain. They must leave nothing in the process or in Redis.

const CALLERS = 1_000;

async function waitInVain(t: ExecutionContext, keys: readonly string[]): Promise<void> {
  const server = await startRedis();
  t.teardown(server.stop);
  const watcher = server.client();
  const held = [...new Set(keys)];
  await watcher.mset(Object.fromEntries(held.map((key) => [key, "somebody else"])));

  const configuration: WaitersConfiguration = { url: server.url, keys };
  const child = startChild<WaitersReport>("waiters.ts", configuration);
  t.teardown(() => child.kill());
  const before = await child.reported(({ event }) => event === "before");
  const { ends } = await child.reported(({ event }) => event === "waited");
  // On a busy machine, the last try of a caller may get no answer in time.
  const { LOCK_WAIT_TIME_OUT: timedOut = 0, LOCK_UNREACHABLE: unanswered = 0 } = ends;
  t.is(timedOut + unanswered, CALLERS, JSON.stringify(ends));
  t.true(timedOut > 0);

  // Nobody awaits the commands that leave the queue.
  await until(async () => (await watcher.dbsize()) === held.length);
  t.deepEqual((await watcher.keys("*")).toSorted(), held.toSorted(), "no queue is left");
  t.is(await othersThan(watcher), 2, "the application's client, and one connection for wake-ups");
  t.is(await subscriptions(watcher), 1);
  child.tell("go on");
  const after = await child.reported(({ event }) => event === "after");
  t.deepEqual(after.listeners, before.listeners);
  t.deepEqual(after.resources, before.resources);

  t.like(await child.ended, { code: 0 }, "the process ends by itself");
  await child.closed;
  t.is(child.complaints, "", "no warning about listeners, or anything else");
  await until(async () => (await othersThan(watcher)) === 0);
  t.is(await subscriptions(watcher), 0);
}

/** Returns how many connections Redis has besides this one. */
async function othersThan(watcher: Redis): Promise<number> {
  return (
    String(await watcher.call("CLIENT", "LIST"))
      .trim()
      .split("\n").length - 1
  );
}

async function subscriptions(watcher: Redis): Promise<number> {
  const channels = await watcher.call("PUBSUB", "CHANNELS");
  return Array.isArray(channels) ? channels.length : NaN;
}

test("a thousand waiters for one key leave nothing behind", async (t) => {
  await waitInVain(
    t,
    Array.from({ length: CALLERS }, () => "LOCK_one"),
  );
});

test("a thousand waiters for a hundred keys leave nothing behind", async (t) => {
  await waitInVain(
    t,
    Array.from({ length: CALLERS }, (_, index) => `LOCK_each_${index % 100}`),
  );
});
