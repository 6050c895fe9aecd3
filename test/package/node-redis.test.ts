import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { installed } from "../hosts/installed";
import { PACKAGE } from "../hosts/project";
import { startRedis } from "../support/redis-server";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

// A project that has node-redis installed, and not ioredis.

const STRICT = { exactOptionalPropertyTypes: true, skipLibCheck: false } as const;

for (const [version, inSuite, directory] of [
  ["6", outsideMatrixSerially, async () => join(PACKAGE, "node_modules")],
  ["5", inMatrixSerially, () => installed("redis-5")],
] as const) {
  inSuite(
    `the types accept the clients of node-redis ${version}, which hold locks without ioredis`,
    async (t) => {
      const redis = await startRedis();
      t.teardown(() => redis.stop());
      const project = await makeConsumer(
        {
          "src/order.ts": `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string, look: (key: string) => Promise<string | null>): Promise<string> {
  const holder = (await look("LOCK_payOrder_A1")) ?? "";
  return \`\${orderNo} under \${holder.replace(/^[0-9a-f]{32}$/, "a request id")}\`;
}
`,
          "src/main.ts": `import {
  createClient,
  createClientPool,
  createCluster,
  createSentinel,
  defineScript,
  type RedisClientPoolType,
  type RedisClientType,
  type RedisClusterType,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type RedisSentinelType,
  type RespVersions,
} from "redis";
import { configure, quorumStore, redisStore, shutdown, type NodeRedisClient, type Store } from "lockweave";
import { pay } from "./order.js";

type Of<Resp extends RespVersions> = RedisClientType<RedisModules, RedisFunctions, RedisScripts, Resp>;
export const ofType = (client: RedisClientType): Store => redisStore(client);
export const ofResult = (client: ReturnType<typeof createClient>): Store => redisStore(client);
export const ofVersions = (two: Of<2>, three: Of<3>, any: Of<RespVersions>): Store => quorumStore([two, three, any]);
export const ofPool = (client: RedisClientPoolType): Store => redisStore(client);
export const ofSentinel = (client: RedisSentinelType): Store => redisStore(client);
export const ofCluster = (client: RedisClusterType): Store => redisStore(client);

const add = defineScript({
  SCRIPT: "return 1",
  NUMBER_OF_KEYS: 1,
  parseCommand: () => {},
  transformReply: (reply: unknown) => reply as never,
});
const plain = { modules: {}, functions: {}, scripts: { add } };
const nodes = { rootNodes: [{ url: "redis://localhost" }] };
const sentinels = { name: "locks", sentinelRootNodes: [{ host: "localhost", port: 26379 }] };
export const all: NodeRedisClient[] = [
  createClient({ RESP: 2 }),
  createClient({ RESP: 3 }),
  createClient({ RESP: 2, ...plain }),
  createClient({ RESP: 3, ...plain }).withTypeMapping({ 36: Buffer }),
  createClientPool(),
  createClientPool({ RESP: 2 }, { maximum: 5 }),
  createClientPool({ RESP: 3, ...plain }).withTypeMapping({ 36: Buffer }),
  createSentinel(sentinels),
  createSentinel({ ...sentinels, RESP: 3 }).withTypeMapping({ 36: Buffer }),
  createSentinel({ ...sentinels, RESP: 2, ...plain }),
  createCluster(nodes),
  createCluster({ ...nodes, RESP: 3 }).withTypeMapping({ 36: Buffer }),
  createCluster({ ...nodes, RESP: 2, ...plain }),
];

const client = createClient({ url: process.argv[2] ?? "" });
await client.connect();
configure({ redis: client });
console.log(await pay("A1", (key) => client.get(key)), await client.get("LOCK_payOrder_A1"));
await shutdown();
await client.close();
`,
        },
        STRICT,
      );
      await symlink(join(await directory(), "redis"), project.path("node_modules/redis"));
      t.like(await project.tspc(), { code: 0, stdout: "" });
      t.like(await project.run("out/main.js", redis.url), {
        code: 0,
        stdout: "A1 under a request id null\n",
        stderr: "",
      });
    },
  );
}

outsideMatrixSerially(
  "the types need no client library, and reject an object that is not a client",
  async (t) => {
    const project = await makeConsumer(
      {
        "src/main.ts": `import { configure } from "lockweave";
configure({ redis: "redis://localhost" });
configure({ redis: { get: async (key: string) => key } });
`,
      },
      STRICT,
    );
    const { code, stdout } = await project.tspc();
    t.not(code, 0);
    t.regex(stdout, /^src\/main\.ts\(3,22\): error TS.*RedisClient \| NodeRedisClient/);
    t.is(stdout.match(/error TS/g)?.length, 1, stdout);
  },
);

const CLI = "node_modules/lockweave/dist/transformer/cli/main.js";

/** A function without a tag. */
const ORDER = `export async function pay(orderNo: string, body: () => string): Promise<string> {
  return \`\${orderNo} \${body()}\`;
}
`;

inMatrixSerially(
  "a project with only node-redis on disk runs init, its first lock by URL, tests, and the live commands",
  async (t) => {
    const redis = await startRedis();
    t.teardown(() => redis.stop());
    const project = await makeConsumer(
      {
        "package.json": JSON.stringify({
          type: "module",
          scripts: { build: "tspc" },
          dependencies: { lockweave: "*", redis: "*" },
          devDependencies: { typescript: "*", "ts-patch": "*" },
        }),
        "src/order.ts": ORDER,
        "src/main.ts": `import { execFileSync } from "node:child_process";
import { configure, shutdown } from "lockweave";
import { pay } from "./order.js";

const url = process.argv[2] ?? "";
const lockweave = (...args: string[]): string =>
  execFileSync(process.execPath, ["${CLI}", ...args, "--redis", url], { encoding: "utf8" });
configure({ redis: url, logger: { debug: (line) => line.includes("connects") && console.log(line), warn: console.log } });
console.log(await pay("A1", () => lockweave("top", "--json")));
console.log(await pay("A2", () => lockweave("inspect", "LOCK_payOrder_A2")));
console.log(await pay("A3", () => lockweave("release", "LOCK_payOrder_A3", "--now", "--yes")).catch(({ code }) => code));
await shutdown();
`,
        "src/tests.ts": `import { testLocks } from "lockweave/testing";
import { pay } from "./order.js";

const locks = testLocks();
console.log(await pay("A1", () => locks.held.join()));
`,
      },
      STRICT,
    );
    await symlink(join(PACKAGE, "node_modules/redis"), project.path("node_modules/redis"));
    const init = await project.run(CLI, "init", "--yes");
    t.like(init, { code: 0, stderr: "" }, init.stdout);
    t.regex(init.stdout, /\n {2}node-redis: `redis` in package\.json\n/);
    t.notRegex(init.stdout, /ioredis/);
    t.regex(init.stdout, /A1 is paid under LOCK_firstLock_A1/);
    const tag = "/** @redisLock businessFlag=payOrder keyName=orderNo */";
    await project.write({ "src/order.ts": `${tag}\n${ORDER}` });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const { stdout, stderr } = await project.run("out/main.js", redis.url);
    t.is(stderr, "");
    t.regex(
      stdout,
      /^Lockweave connects to Redis with the package redis, because .*package\.json declares it\n/,
    );
    t.regex(stdout, /\nA1 \{\s+"locks": \[\s+\{\s+"key": "LOCK_payOrder_A1",\s+"state": "held"/);
    t.regex(stdout, /\nA2 [^]*LOCK_payOrder_A2/);
    t.regex(stdout, /\nLOCK_LOST\n$/);
    t.like(await project.run("out/tests.js"), { code: 0, stdout: "A1 LOCK_payOrder_A1\n", stderr: "" });
  },
);
