import test, { type ExecutionContext } from "ava";
import {
  release,
  newId,
  newKey,
  enqueue,
  placing,
  renew,
  acquire,
  TAKEN,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { recordEvents } from "./noting-listener";

// The caller's client may resend a command by itself if the connection breaks before the reply.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

async function overProxy(t: ExecutionContext): Promise<{ own: WholeStore; proxy: TcpProxy }> {
  const proxy = await startTcpProxy(server.port);
  const own = redisStore(server.client({ port: proxy.port }));
  t.teardown(async () => {
    await own.close();
    await proxy.stop();
  });
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId); // Redis has the scripts from here on.
  await renew(own, key, requestId, 60_000);
  const request = placing(key, newId());
  await own.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
  await release(own, key, request.requestId);
  await enqueue(own, key, newId(), {}, requestId);
  await own.batch?.releaseMany([{ key, requestId }], TIMEOUT_MS);
  return { own, proxy };
}

test("a resent acquire() reports its own requestId as the holder", async (t) => {
  const watcher = server.client();
  const { own, proxy } = await overProxy(t);
  const [key, requestId] = [newKey(), newId()];
  proxy.withholdReplies();
  const taken = acquire(own, key, requestId);
  await until(async () => (await watcher.exists(key)) === 1);
  proxy.cut();
  t.deepEqual(await taken, { acquired: false, holder: requestId, freeInMs: undefined });
});

test("a resent enqueue() reports its own requestId as the holder", async (t) => {
  const watcher = server.client();
  const { own, proxy } = await overProxy(t);
  const [key, requestId] = [newKey(), newId()];
  const { warnings } = recordEvents(own);
  proxy.withholdReplies();
  const taken = enqueue(own, key, newId(), {}, requestId);
  await until(async () => (await watcher.exists(key)) === 1);
  proxy.cut();
  t.like(await taken, { acquired: false, holder: requestId });
  t.deepEqual(warnings, []);
});

test("a resent release() throws instead of reporting a lost lock", async (t) => {
  const watcher = server.client();
  const { own, proxy } = await overProxy(t);
  const [key, other, requestId] = [newKey(), newKey(), newId()];
  for (const name of [key, other]) await acquire(own, name, requestId);
  proxy.withholdReplies();
  const dropped = release(own, key, requestId);
  const many = own.batch?.releaseMany([{ key: other, requestId }], TIMEOUT_MS);
  await until(async () => (await watcher.exists(key, other)) === 0);
  proxy.cut();
  await t.throwsAsync(dropped, { message: /the connection broke/ });
  const [reply] = (await many) ?? [];
  t.true(reply instanceof Error && reply.message.startsWith("the connection broke"));
});

test("a resent release() throws even if the cluster node that runs it again does not have its script", async (t) => {
  const cluster = await startRedisCluster();
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error("the cluster has no node");
  const proxy = await startTcpProxy(node.port);
  const natMap = { [`127.0.0.1:${node.port}`]: { host: "127.0.0.1", port: proxy.port } };
  const own = redisStore(cluster.cluster({ natMap }));
  t.teardown(async () => {
    await own.close();
    await proxy.stop();
    await cluster.stop();
  });
  const [key, other, requestId] = [newKey(), newKey(), newId()];
  for (const name of [key, other]) await acquire(own, name, requestId);
  for (const name of [newKey(), newKey()]) await release(own, name, requestId);
  proxy.withholdReplies();
  const dropped = release(own, key, requestId);
  const many = own.batch?.releaseMany([{ key: other, requestId }], TIMEOUT_MS);
  await until(async () => (await node.admin.exists(key)) + (await node.admin.exists(other)) === 0);
  await node.admin.script("FLUSH");
  proxy.cut();
  await t.throwsAsync(dropped, { message: /the connection broke/ });
  const [reply] = (await many) ?? [];
  t.true(reply instanceof Error && reply.message.startsWith("the connection broke"));
});

test("a resent releaseAndEnqueue() throws, and the next hold can be renewed", async (t) => {
  const watcher = server.client();
  const { own, proxy } = await overProxy(t);
  const [key, requestId] = [newKey(), newId()];
  const request = placing(key, newId());
  t.deepEqual(await acquire(own, key, requestId), TAKEN);
  proxy.withholdReplies();
  const handedOff = own.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
  await until(async () => (await watcher.get(key)) === request.requestId);
  proxy.cut();
  await t.throwsAsync(handedOff, { message: /the connection broke/ });
  t.deepEqual(await renew(own, key, request.requestId, 60_000), { renewed: true });
});

test("a resent acquire() whose first copy was lost says that it may arrive again", async (t) => {
  const { own, proxy } = await overProxy(t);
  const requestId = newId();
  const bytesBefore = proxy.bytesSent;
  proxy.blackHole();
  const taken = acquire(own, newKey(), requestId);
  await until(() => proxy.bytesSent > bytesBefore);
  proxy.reset();
  t.deepEqual(await taken, { acquired: true, mayRunAgain: true });
});

test("a script throws if the client is in a transaction, because QUEUED is not a reply", async (t) => {
  const client = server.client();
  const own = redisStore(client);
  t.teardown(() => own.close());
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId);
  await release(own, key, newId()); // Redis has the scripts from here on.
  await enqueue(own, key, newId(), {}, newId());
  await renew(own, key, requestId, 60_000);
  await client.multi({ pipeline: false });
  await t.throwsAsync(release(own, key, requestId), { message: /unexpected reply to a script: 'QUEUED'/ });
  await t.throwsAsync(enqueue(own, key, newId(), {}, newId()), { message: /'QUEUED'/ });
  await client.discard();
  t.deepEqual(await renew(own, key, requestId, 60_000), { renewed: true });
});
