import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { redisStore } from "../../runtime/stores/redis/redis";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";

// The caller soon gets what the body throws, whatever happens to the release.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

const THROWN: Record<string, unknown> = {
  "an error": new Error("the body's own"),
  undefined: undefined,
  null: null,
  "a string": "text",
};

interface Network {
  readonly proxy: TcpProxy;
  readonly watcher: Redis;
  readonly key: string;
}

/** What happens while the body runs. */
const TROUBLES: Record<string, (network: Network) => Promise<void>> = {
  "the release is not answered": async ({ proxy }) => proxy.blackHole(),
  "the connection breaks permanently": ({ proxy }) => proxy.stop(),
  "the connection is reset instead of the release's reply": async ({ proxy, key }) =>
    void proxy.strike(1, "reset", key),
  "Redis refuses the release": async ({ proxy, key }) =>
    void proxy.strike(1, { answer: "-NOAUTH Authentication required.\r\n" }, key),
  "another client deleted the key": async ({ watcher, key }) => void (await watcher.del(key)),
  "another client holds the key": async ({ watcher, key }) => void (await watcher.set(key, "stolen")),
};

let keys = 0;

async function run(
  t: ExecutionContext,
  trouble: (network: Network) => Promise<void>,
  body: () => unknown,
): Promise<{ readonly result?: unknown; readonly thrown?: readonly unknown[]; readonly warnings: string[] }> {
  const key = `LOCK_body_${(keys += 1)}`;
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  const store = redisStore(server.client({ port: proxy.port }));
  const warnings: string[] = [];
  const process = new FleetProcess({
    store,
    logger: { warn: (line) => void warnings.push(line) },
  });
  t.teardown(async () => {
    await retire(process);
    await proxy.stop().catch(() => {}); // It may be stopped already.
  });
  // Now it is connected, and Redis knows the scripts. All tests of this file begin at once, which may take a busy machine some time.
  await process.call(`${key}:first`, { wait: "2m" }, () => {});
  const call = process.call(key, { lockTime: "10m" }, async () => {
    await trouble({ proxy, watcher, key });
    return body();
  });
  const outcome = await call.then(
    (result) => ({ result }),
    (error: unknown) => ({ thrown: [error] }),
  );
  return { ...outcome, warnings };
}

for (const [troubleName, trouble] of Object.entries(TROUBLES)) {
  for (const [name, thrown] of Object.entries(THROWN)) {
    test(`the caller gets what the body throws (${name}) even if ${troubleName}`, async (t) => {
      const outcome = await run(t, trouble, () => {
        throw thrown;
      });
      t.is(outcome.thrown?.length, 1);
      t.is(outcome.thrown?.[0], thrown);
      if (troubleName !== "the connection is reset instead of the release's reply") {
        t.not(outcome.warnings.length, 0, "the other failure is logged");
      }
    });
  }
}

for (const [troubleName, trouble] of Object.entries(TROUBLES).slice(0, 4)) {
  test(`the caller gets the result of the body even if ${troubleName}`, async (t) => {
    const { result } = await run(t, trouble, () => "result");
    t.is(result, "result");
  });
}
