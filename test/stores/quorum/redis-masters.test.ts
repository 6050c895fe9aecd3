import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { LockMisconfiguredError, LockOptionError, quorumStore } from "../../../runtime";
import { untilListening, storeContract } from "../../store-contract";
import { newId, newKey, acquire, TAKEN, TIMEOUT_MS } from "../../store-contract/subject";
import { systemClock } from "../../../runtime/base/clock";
import type { RedisClient } from "../../../runtime/stores/redis/client";
import { portOf } from "../../../runtime/stores/redis/recognize-client";
import type { WholeStore } from "../../../runtime/stores/port";
import { QuorumStore } from "../../../runtime/stores/quorum/quorum";
import { redisMasters } from "../../../runtime/stores/quorum/redis-member";
import { Servers, StartTime } from "../../../runtime/stores/quorum/start-time";
import { counting } from "../../support/counting-client";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { registering } from "../registering";

// The store contract with five real masters, and the rules for a list of masters.

let servers: RedisServer[];
let store: WholeStore;

/** A client whose server reports an uptime of a month, so that the master can vote immediately. */
function aged(client: RedisClient): RedisClient {
  return Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]) => {
        const reply = await client.call(command, ...args);
        const isServerInfo = command === "info" && args[0] === "server";
        return isServerInfo ? String(reply).replace(/(uptime_in_seconds:)\d+/, "$12592000") : reply;
      },
    },
  }) as RedisClient;
}

test.before(async () => {
  servers = await Promise.all(Array.from({ length: 5 }, () => startRedis()));
  const members = redisMasters(servers.map((server) => aged(server.client()))).open(new Map());
  await Promise.all(members.map((member) => untilListening(member.store)));
  store = new QuorumStore(members, systemClock, 86_400_000);
});

test.after.always(async () => {
  await store.close();
  await Promise.all(servers.map((server) => server.stop()));
});

storeContract(registering(test), () => ({
  store,
  canShare: false,
  elapse: (ms) => pause(ms + 5),
  async put(key, value, ms) {
    for (const server of servers) await server.client().set(key, value, "PX", ms);
  },
}));

test("quorumStore() rejects invalid masters and options with the reason", (t) => {
  const client = { call() {}, duplicate() {}, on() {}, off() {}, options: {} };
  const glide = { async customCommand() {}, async getPubSubMessage() {} };
  const refusals: [masters: unknown, message: RegExp][] = [
    [[], /at least 3 masters/],
    ["redis://localhost", /at least 3 masters/],
    [["redis://a", "redis://b"], /at least 3 masters/],
    [["redis://a", "redis://b", "redis://a"], /one of them twice/],
    [["redis://a", "redis://b", {}], /client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun/],
    [["redis://a", "redis://b", { ...client, isCluster: true }], /a cluster/],
    [["redis://a", "redis://b", { ...client, options: { sentinels: [] } }], /behind Sentinel/],
    [["redis://a", "redis://b", glide], /a client of Valkey GLIDE\. .* Fix: /],
  ];
  for (const [masters, message] of refusals) {
    t.throws(() => quorumStore(masters as string[]), { instanceOf: LockOptionError, message });
  }
  const options: [options: unknown, message: RegExp][] = [
    [{ longestLockTime: 5 }, /duration/],
    [{ longest: "1s" }, /longestLockTime/],
    [[], /longestLockTime/],
  ];
  for (const [wrong, message] of options) {
    t.throws(() => quorumStore(["redis://a", "redis://b", "redis://c"], wrong as object), {
      instanceOf: LockOptionError,
      message,
    });
  }
});

test("concurrent requests are sent to each master in batches", async (t) => {
  const counted = servers.map((server) => counting(aged(server.client())));
  const quorum = quorumStore(counted.map(({ client }) => client));
  t.teardown(() => quorum.close());
  const sent = (): number[] =>
    counted.map(({ commands }) => commands().filter((name) => name !== "INFO").length);
  const keys = Array.from({ length: 100 }, newKey);
  const requests = keys.map((key) => ({ key, requestId: newId(), lockTimeMs: 20_000, fencing: false }));
  const taken = await quorum.batch?.acquireMany(requests, 20_000);
  t.true(taken?.every((reply) => "acquired" in reply && reply.acquired));
  const takes = sent();
  const dropped = await quorum.batch?.releaseMany(requests, 20_000);
  t.true(dropped?.every((reply) => "released" in reply && reply.released));
  const drops = sent();
  t.log(
    `commands to each master for ${keys.length} takes: ${takes.join()}, and as many drops: ${drops.join()}`,
  );
  t.true([...takes, ...drops].every((count) => count > 0 && count <= keys.length / 5));
});

test("two clients of the same server have one vote", async (t) => {
  const [one, other] = servers;
  const quorum = quorumStore(
    [one, one, other, one, one].flatMap((server) => (server ? [aged(server.client())] : [])),
  );
  t.teardown(() => quorum.close());
  await t.throwsAsync(acquire(quorum, newKey(), newId(), { lockTimeMs: 1_000 }), {
    instanceOf: LockMisconfiguredError,
    message: /only [12] of 5 masters agreed, but 3 must .*it is the same server as another master/,
  });
});

test("a master whose user may not read its uptime has no vote, and a majority of the others suffices", async (t) => {
  const clients = servers.map((server) => server.client());
  const blind = { username: "blind", password: "pw" };
  for (const client of clients.slice(0, 3)) {
    await client.call("ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-info");
  }
  const quorumOf = (blinds: number): WholeStore => {
    const quorum = quorumStore(
      servers.map((server, n) =>
        aged(n < blinds ? server.client({ ...blind, enableReadyCheck: false }) : server.client()),
      ),
    );
    t.teardown(() => quorum.close());
    return quorum;
  };
  t.like(await acquire(quorumOf(2), newKey(), newId(), { lockTimeMs: 1_000 }), TAKEN);
  await t.throwsAsync(acquire(quorumOf(3), newKey(), newId(), { lockTimeMs: 1_000 }), {
    instanceOf: LockMisconfiguredError,
    message: /its uptime cannot be read.*INFO/,
  });
});

test("inspect() names what is wrong with masters that reject the password", async (t) => {
  const quorum = quorumStore(
    servers.map((server, n) =>
      n < 3 ? server.url.replace("redis://", "redis://nobody:wrong@") : aged(server.client()),
    ),
  );
  t.teardown(() => quorum.close());
  const error = await t.throwsAsync(quorum.admin.inspect(newKey(), TIMEOUT_MS), {
    instanceOf: LockMisconfiguredError,
    message: /^only 2 of 5 masters agreed, but 3 must \(master \d: Redis rejected the password/,
  });
  for (const n of [1, 2, 3]) t.regex(error.message, new RegExp(`master ${n}: Redis rejected the password`));
});

test("a master that rejects the password has no vote, and the error gives no other reason", async (t) => {
  const client = servers[0]?.client() as RedisClient;
  const wrong = Object.create(client, {
    call: {
      value: () =>
        Promise.reject(
          Object.assign(new Error("WRONGPASS invalid username-password pair"), { name: "ReplyError" }),
        ),
    },
  }) as RedisClient;
  const startTime = new StartTime(portOf(wrong), systemClock, new Servers());
  t.teardown(() => startTime.close());
  await t.throwsAsync(startTime.get(), {
    instanceOf: LockMisconfiguredError,
    message:
      "Redis rejected the password of the client (WRONGPASS invalid username-password pair). Fix: use the password of this Redis user",
  });
});
