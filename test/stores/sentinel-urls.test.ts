import test from "ava";
import { redisStoreAt } from "../../runtime/stores/redis/redis";
import { untilListening } from "../store-contract";
import { acquire, newId, newKey, TAKEN } from "../store-contract/subject";
import { URL_LIBRARIES } from "../support/client-libraries";
import { FleetProcess } from "../support/fleet";
import type { RedisServer } from "../support/redis-server";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// A `redis+sentinel://` URL over each library. `faults/sentinel.test.ts` tests failovers.

let group: SentinelGroup;
let master: RedisServer;
let sentinel: RedisServer;

test.before(async () => {
  group = await startSentinelGroup(0, 1);
  const [firstMaster, firstSentinel] = [group.servers[0], group.sentinels[0]];
  if (firstMaster === undefined || firstSentinel === undefined) throw new Error("the group is empty");
  [master, sentinel] = [firstMaster, firstSentinel];
  await master.client().call("ACL", "SETUSER", "app", "on", ">p@ss", "allkeys", "allchannels", "+@all");
  await sentinel.client().call("ACL", "SETUSER", "watcher", "on", ">p&ss", "allchannels", "+@all");
});

test.after.always(() => group.stop());

async function connectionsOf(server: RedisServer, user: string): Promise<number> {
  const list = String(await server.client().client("LIST"));
  return list.split("\n").filter((line) => line.includes(` user=${user} `)).length;
}

for (const { title, at } of URL_LIBRARIES) {
  test.serial(
    `${title}a Sentinel URL has the users of the servers and of the sentinels, and close() closes all its connections`,
    async (t) => {
      const query = "sentinel_username=watcher&sentinel_password=p%26ss";
      const url = `redis+sentinel://app:p%40ss@127.0.0.1:${sentinel.port}/${group.name}/3?${query}`;
      const store = redisStoreAt(at(url));
      const [key, requestId] = [newKey(), newId()];
      t.deepEqual(await acquire(store, key, requestId), TAKEN);
      t.is(await master.client({ db: 3 }).get(key), requestId);
      await untilListening(store);
      await until(async () => (await connectionsOf(sentinel, "watcher")) > 0);
      t.is(await connectionsOf(master, "app"), 2);
      await store.close();
      await until(async () => (await connectionsOf(sentinel, "watcher")) === 0);
      await until(async () => (await connectionsOf(master, "app")) === 0);
    },
  );

  test.serial(
    `${title}a lock by a Sentinel URL does not wait long for a sentinel that is silent`,
    async (t) => {
      const proxy = await startTcpProxy(sentinel.port);
      t.teardown(() => proxy.stop());
      proxy.blackHole();
      const store = redisStoreAt(
        at(`redis+sentinel://127.0.0.1:${proxy.port},127.0.0.1:${sentinel.port}/${group.name}`),
      );
      t.teardown(() => store.close());
      t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
    },
  );

  test.serial(`${title}the error about a Sentinel URL says why there is no master`, async (t) => {
    const warnings: string[] = [];
    const process = new FleetProcess({
      redis: at(`redis+sentinel://127.0.0.1:${sentinel.port}/unknown`),
      logger: { warn: (line) => void warnings.push(line) },
    });
    t.teardown(() => retire(process));
    await t.throwsAsync(
      process.call("LOCK_none", { retryTimes: 1, waitTime: "500ms" }, () => t.fail()),
      { code: "LOCK_UNREACHABLE" },
    );
    await until(() => warnings.some((line) => /[Ss]entinels/.test(line)));
  });
}
