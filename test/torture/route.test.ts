import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { openRoute, type Route } from "./route";

let server: RedisServer;
let admin: Redis;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
});

test.after.always(() => server.stop());

async function open(t: ExecutionContext): Promise<{ route: Route; client: Redis }> {
  const route = await openRoute(server.port);
  const client = server.client({
    port: route.port,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  });
  t.teardown(async () => {
    client.disconnect();
    await route.stop();
  });
  await client.ping();
  return { route, client };
}

test("a route that loses replies still delivers commands, until it breaks", async (t) => {
  const { route, client } = await open(t);
  route.loseReplies();
  const reply = t.throwsAsync(client.set("lost-reply", "1"));
  await until(async () => (await admin.get("lost-reply")) === "1");
  route.breakSilent();
  await reply;
});

test("a silent route delivers nothing, and new connections work", async (t) => {
  const { route, client } = await open(t);
  route.silence();
  const reply = t.throwsAsync(client.set("silent", "1"));
  const other = server.client({ port: route.port });
  t.is(await other.ping(), "PONG");
  other.disconnect();
  route.breakSilent();
  await reply;
  t.is(await admin.get("silent"), null);
});

test("the server notices that a client has left a silent connection when the route breaks", async (t) => {
  const { route, client } = await open(t);
  const id = await client.client("ID");
  const isConnected = async (): Promise<boolean> => String(await admin.client("LIST")).includes(`id=${id} `);
  route.silence();
  client.disconnect();
  await once(client, "end");
  t.true(await isConnected());
  route.breakSilent();
  await until(async () => !(await isConnected()));
});

test("delayed commands arrive in order", async (t) => {
  const { route, client } = await open(t);
  const deliver = route.delay();
  const replies = Promise.all([client.rpush("delayed", "1"), client.rpush("delayed", "2")]);
  await pause(20);
  t.is(await admin.exists("delayed"), 0);
  deliver();
  t.deepEqual(await replies, [1, 2]);
  t.deepEqual(await admin.lrange("delayed", 0, -1), ["1", "2"]);
});

test("repeated commands run once more, and no client gets their replies", async (t) => {
  const { route, client } = await open(t);
  t.is(await client.incr("repeated"), 1);
  const repeat = route.repeat();
  t.is(await client.incr("later"), 1);
  repeat();
  await until(async () => (await admin.get("repeated")) === "2");
  t.is(await client.incr("later"), 2);
});

test("new connections of a route that moved lead to the other server", async (t) => {
  const { route, client } = await open(t);
  const other = await startRedis();
  t.teardown(() => other.stop());
  await other.client().set("moved", "here");
  route.moveTo(other.port);
  t.is(await client.get("moved"), null);
  route.reset();
  await until(async () => (await client.get("moved").catch(() => null)) === "here");
  t.pass();
});
