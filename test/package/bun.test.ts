import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { installed } from "../hosts/installed";
import { startRedis } from "../support/redis-server";
import { inMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

// A project of Bun that uses Bun's built-in client, and no client library.

const MAIN = `import { configure, shutdown } from "lockweave";
import { client } from "./redis";

/** @redisLock businessFlag=payOrder keyName=orderNo */
async function pay(orderNo: string): Promise<string> {
  const holder = (await client.get("LOCK_payOrder_A1")) ?? "";
  return \`\${orderNo} under \${holder.replace(/^[0-9a-f]{32}$/, "a request id")}\`;
}

configure({ redis: client });
console.log(await pay("A1"));
await shutdown();
client.close();
`;

const REDIS = `import { RedisClient } from "bun";

export const client = new RedisClient(Bun.argv[2] ?? "", { maxRetries: 1_000_000_000 });
`;

inMatrixSerially("the types accept the clients of Bun", async (t) => {
  const project = await makeConsumer(
    {
      "src/redis.ts": REDIS,
      "src/main.ts": `import { redis, RedisClient } from "bun";
import { configure, quorumStore, redisStore, type BunRedisClient, type Store } from "lockweave";
import { client } from "./redis.js";

class Extended extends RedisClient {
  readonly tenant = "a";
}
export const ofExtended = (given: Extended): Store => redisStore(given);
export const named: BunRedisClient = redis;
export const masters: Store = quorumStore([client, new Extended(), "redis://c"]);
configure({ redis: client, stores: { shared: redis, three: [client, redis, new Bun.RedisClient()] } });
`,
    },
    { exactOptionalPropertyTypes: true, types: ["bun"] },
  );
  const modules = await installed("bun-types");
  await rm(project.path("node_modules/@types/node")); // Bun's types need later ones.
  for (const name of ["bun-types", "undici-types", "@types/bun", "@types/node"])
    await symlink(join(modules, name), project.path(`node_modules/${name}`));
  t.like(await project.tsc(), { code: 0, stdout: "" });
});

inMatrixSerially(
  "a project of Bun without a client library runs init, its first lock, and a lock over the client that init found",
  async (t) => {
    const server = await startRedis();
    t.teardown(() => server.stop());
    const project = await makeConsumer({
      "package.json": JSON.stringify({
        type: "module",
        scripts: { start: "bun src/main.ts" },
        dependencies: { lockweave: "*" },
      }),
      "bun.lock": "",
      "src/redis.ts": REDIS,
    });
    const bun = join(await installed("bun"), "bun/bin/bun.exe");
    const init = await project.run("node_modules/lockweave/dist/transformer/cli/main.js", "init", "--yes");
    t.is(init.code, 0, init.stdout + init.stderr);
    t.regex(init.stdout, /\n {2}Bun's RedisClient: src\/redis\.ts:3 creates a client\n/);
    t.regex(
      init.stdout,
      /`configure\(\{ redis: client \}\)`.* `client` is the one that src\/redis\.ts:3 creates\./,
    );
    t.notRegex(init.stdout, /bun add|ioredis@/);
    const first = await project.runWith(bun, "src/first-lock.ts");
    t.is(first.stdout, "A1 is paid under LOCK_firstLock_A1\n", first.stderr);
    await project.write({ "src/main.ts": MAIN });
    t.like(await project.runWith(bun, "src/main.ts", server.url), {
      code: 0,
      stdout: "A1 under a request id\n",
      stderr: "",
    });
  },
);
