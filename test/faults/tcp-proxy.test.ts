import test, { type ExecutionContext } from "ava";
import { createLocker } from "../../runtime/config/create-locker";
import { Lock } from "../../runtime/lock/lock";
import { monotonicMs } from "../support/monotonic";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Tests of the proxy with which other tests make the network fail.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

async function scene(t: ExecutionContext) {
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const client = server.client({ port: proxy.port });
  await client.ping();
  return { proxy, client, watcher: server.client() };
}

test("blackHole() holds back the data in both directions until heal()", async (t) => {
  const { proxy, client, watcher } = await scene(t);
  proxy.blackHole();
  const before = proxy.bytesSent;
  let isAnswered = false;
  const reply = client.set("hole", "1").finally(() => (isAnswered = true));
  await until(() => proxy.bytesSent > before);
  t.is(await watcher.exists("hole"), 0);
  t.false(isAnswered);
  proxy.heal();
  t.is(await reply, "OK");
  t.is(await watcher.get("hole"), "1");
});

test("strike() hits only the n-th command about a lock, after Redis executed it", async (t) => {
  const { proxy, client, watcher } = await scene(t);
  const struck = proxy.strike(2, "silence");
  t.is(await client.set("one", "1"), "OK");
  const two = client.set("two", "2");
  await struck;
  t.is(await watcher.get("two"), "2");
  const three = client.get("two");
  proxy.heal();
  t.deepEqual(await Promise.all([two, three]), ["OK", "2"]);
});

test("strike() with an answer replies in order and keeps the command from Redis", async (t) => {
  const { proxy, client, watcher } = await scene(t);
  const struck = proxy.strike(1, { answer: "-LOADING wait\r\n" });
  const replies = await Promise.allSettled([
    client.get("never"),
    client.set("never", "1"),
    client.echo("after"),
  ]);
  await struck;
  t.like(replies[0], { status: "fulfilled", value: null });
  t.is(replies[1].status, "rejected");
  t.like(replies[2], { status: "fulfilled", value: "after" });
  t.is(await watcher.exists("never"), 0);
});

test("delayed replies arrive in order", async (t) => {
  const { proxy, client } = await scene(t);
  proxy.delayReplies(100);
  const startedAt = monotonicMs();
  t.deepEqual(await Promise.all([client.echo("a"), client.echo("b")]), ["a", "b"]);
  t.true(monotonicMs() - startedAt >= 99);
});

test("bytesSent counts the bytes that a lock sends", async (t) => {
  const { proxy, client } = await scene(t);
  const before = proxy.bytesSent;
  const locker = createLocker({ redis: client });
  const lock = new Lock(locker.callSites.find({}, undefined, []).made, "LOCK_bytes");
  t.is(proxy.bytesSent, before);
  t.true(await lock.acquire());
  await lock.release();
  t.true(proxy.bytesSent > before);
  await locker.store.close?.();
});
