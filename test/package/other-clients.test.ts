import { symlink } from "node:fs/promises";
import { installedClient, withOtherClients } from "../support/other-clients";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";
import { makeConsumer } from "./consumer";

// Projects that use a client library that is not a development dependency.

const STRICT = { exactOptionalPropertyTypes: true, skipLibCheck: false } as const;

withOtherClients(
  "the types accept the clients of GLIDE, and the process exits after its locks",
  async (t) => {
    const redis = await startRedis();
    const cluster = await startRedisCluster(2);
    t.teardown(() => Promise.all([redis.stop(), cluster.stop()]));
    const project = await makeConsumer(
      {
        "src/order.ts": `/** @redisLock businessFlag=payOrder keyName=orderNo waitTime=1m retryTimes=1 */
export async function pay(orderNo: string, look: (key: string) => Promise<unknown>): Promise<string> {
  const holder = String(await look("LOCK_payOrder_A1"));
  return \`\${orderNo} under \${holder.replace(/^[0-9a-f]{32}$/, "a request id")}\`;
}
`,
        "src/main.ts": `import { GlideClient, type GlideClientConfiguration } from "@valkey/valkey-glide";
import { configure, redisStore, shutdown, type Store, type ValkeyGlide } from "lockweave";
import { pay } from "./order.js";

export const bare = (client: GlideClient): Store => redisStore(client);
export const ofGlide = (given: ValkeyGlide): Store => redisStore(given);
class Extended extends GlideClient {}
export const extended = (glide: Extended, config: GlideClientConfiguration): Store => redisStore({ glide, config });

const config: GlideClientConfiguration = { addresses: [{ host: "127.0.0.1", port: Number(process.argv[2]) }] };
const client = await GlideClient.createClient({ ...config, requestTimeout: 10_000 });
configure({ redis: { glide: client, config }, stores: { other: { glide: client } } });
const look = (key: string): Promise<unknown> => client.get(key);
console.log(...new Set(await Promise.all([pay("A1", look), pay("A1", look)])));
await shutdown();
client.close();
`,
        "src/cluster.ts": `import { GlideClusterClient, type GlideClusterClientConfiguration } from "@valkey/valkey-glide";
import { configure, redisStore, shutdown, type Store } from "lockweave";
import { pay } from "./order.js";

class Extended extends GlideClusterClient {}
export const extended = (glide: Extended, config: GlideClusterClientConfiguration): Store => redisStore({ glide, config });

const config: GlideClusterClientConfiguration = { addresses: [{ host: "127.0.0.1", port: Number(process.argv[2]) }] };
const client = await GlideClusterClient.createClient({ ...config, requestTimeout: 10_000 });
configure({ redis: { glide: client, config } });
const look = (key: string): Promise<unknown> => client.get(key);
console.log(...new Set(await Promise.all([pay("A1", look), pay("A1", look)])));
await shutdown();
client.close();
`,
      },
      STRICT,
    );
    await symlink(installedClient("@valkey"), project.path("node_modules/@valkey"));
    t.like(await project.tspc(), { code: 0, stdout: "" });
    for (const [program, { port }] of [
      ["main", redis],
      ["cluster", cluster.client().options],
    ] as const) {
      t.like(await project.run(`out/${program}.js`, String(port)), {
        code: 0,
        stdout: "A1 under a request id\n",
      });
    }
  },
);

for (const [library, link, client, fix] of [
  [
    "@upstash/redis",
    "@upstash",
    `import { Redis } from "@upstash/redis";
const client = new Redis({ url: "https://localhost", token: "none" });`,
    "rediss://default:<password>@<endpoint>:6379",
  ],
  [
    "node-redis 4",
    "redis-4",
    `import { createClient } from "redis-4";
const client = createClient();`,
    "ioredis, iovalkey, node-redis 5 and later, Valkey GLIDE, and Bun. Fix: npm install redis@latest",
  ],
] as const) {
  withOtherClients(`the type error about a client of ${library} says what to pass`, async (t) => {
    const project = await makeConsumer(
      {
        "src/main.ts": `import { configure, redisStore } from "lockweave";
${client}
configure({ redis: client });
redisStore(client);
configure({ redis: "redis://localhost", stores: { payments: client } });
`,
      },
      { ...STRICT, skipLibCheck: true, lib: ["es2024", "dom"] },
    );
    await symlink(installedClient(link), project.path(`node_modules/${link}`));
    const { code, stdout } = await project.tspc();
    t.not(code, 0);
    t.is(stdout.match(/error TS/g)?.length, 3, stdout);
    t.is(stdout.split(fix).length, 4, stdout);
  });
}
