import { once } from "node:events";
import test from "ava";
import { redisStore } from "../../runtime/stores/redis/redis";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis } from "../support/redis-server";
import { retire } from "../support/retire";
import { until } from "../support/until";

// Redis settings that endanger locks are logged once, with a fix, and calls still work.

for (const [name, policy, warnings] of [
  ["a Redis that may evict held locks causes one warning", "allkeys-lru", 1],
  ["a Redis that rejects writes when its memory is full causes no warning", "noeviction", 0],
] as const) {
  test(name, async (t) => {
    const server = await startRedis("--maxmemory", "50mb", "--maxmemory-policy", policy);
    t.teardown(server.stop);
    const admin = server.client();
    const logged: string[] = [];
    const client = server.client();
    const process = new FleetProcess({
      store: redisStore(client),
      logger: { warn: (line) => void logged.push(line) },
    });
    t.teardown(() => retire(process));
    for (let connection = 1; connection <= 3; connection += 1) {
      t.is(await process.call("LOCK_evicted", {}, () => "in"), "in");
      const isBack = once(client, "ready");
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await isBack;
      await client.ping(); // Waits for the query of the settings, which each new connection sends first.
    }
    t.is(logged.length, warnings, logged.join("\n"));
    for (const line of logged) t.regex(line, /maxmemory-policy allkeys-lru.*Fix: keep locks in .*noeviction/);
  });
}

test("a Redis user without access to channels causes one warning, and waiters still get the lock", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  await server.client().call("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "resetchannels");
  const logged: string[][] = [];
  const members = [1, 2].map(() => {
    const lines: string[] = [];
    logged.push(lines);
    const store = redisStore(server.client({ username: "app", password: "secret" }));
    const member = new FleetProcess({ store, logger: { warn: (line) => void lines.push(line) } });
    t.teardown(() => retire(member));
    return member;
  });
  const holder = new FleetProcess({ store: redisStore(server.client()) });
  t.teardown(() => retire(holder));
  const [entered, allHaveLogged] = [deferred(), deferred()];
  const held = holder.call("LOCK_deaf", {}, async () => {
    entered.resolve();
    await allHaveLogged.promise;
  });
  await entered.promise;
  const sections = members.map(async (member) => {
    const results: unknown[] = [];
    for (let section = 1; section <= 4; section += 1) {
      results.push(await member.call("LOCK_deaf", {}, () => "in"));
    }
    return results;
  });
  await until(() => logged.every((lines) => lines.length > 0));
  allHaveLogged.resolve();
  await held;
  t.deepEqual(await Promise.all(sections), [Array(4).fill("in"), Array(4).fill("in")]);
  for (const lines of logged) {
    t.is(lines.length, 1, lines.join("\n"));
    t.regex(lines.join("\n"), /has no permission for the channels.*ACL SETUSER <user> &lockweave:1:\*/);
  }
});
