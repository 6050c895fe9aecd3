import { symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { installed } from "../hosts/installed";
import { startRedis } from "../support/redis-server";
import { makeConsumer } from "./consumer";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

/** The clients of ioredis 6 that change replies. */
const MAPPED = `
export const mapped = (client: Redis<"resp3">, cluster: Cluster<"resp3">): Store[] => [redisStore(client), redisStore(cluster)];
export const mappedAlike = (client: Redis<"legacy" | "resp3">): Store => redisStore(client);
export const created: Store[] = [
  redisStore(new Redis({ lazyConnect: true, protocol: 3, replyMapping: "resp3" })),
  redisStore(new Redis({ lazyConnect: true, protocol: 2 })),
];
`;

/** iovalkey is a copy of ioredis. */
const LIBRARIES = [
  ["ioredis", "ioredis-5.4", ""],
  ["ioredis", "ioredis-5", ""],
  ["ioredis", "ioredis-6", MAPPED],
  ["iovalkey", "iovalkey", ""],
] as const;

for (const [name, set, more] of LIBRARIES) {
  inMatrix(`the types accept a client of ${set}, and it holds locks`, async (t) => {
    const redis = await startRedis();
    t.teardown(() => redis.stop());
    const given = name === "ioredis" ? "[client, url]" : "[client]"; // A URL needs ioredis.
    const project = await makeConsumer(
      {
        "src/order.ts": `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string, look: (key: string) => Promise<string | null>): Promise<string> {
  const holder = (await look("LOCK_payOrder_A1")) ?? "";
  return \`\${orderNo} under \${holder.replace(/^[0-9a-f]{32}$/, "a request id")}\`;
}
`,
        "src/main.ts": `import { Redis, type Cluster } from "${name}";
import { configure, quorumStore, redisStore, shutdown, type Store } from "lockweave";
import { pay } from "./order.js";

class Extended extends Redis {
  readonly tenant = "a";
}
export const ofCluster = (cluster: Cluster): Store => redisStore(cluster);
export const ofEither = (client: Redis | Cluster): Store => redisStore(client);
export const ofExtended = (client: Extended): Store => redisStore(client);
export const ofQuorum = (client: Redis, extended: Extended): Store => quorumStore([client, extended, "redis://c"]);
export const several = (client: Extended, cluster: Cluster): void => configure({ redis: cluster, stores: { one: client, three: [client, client, client] } });
${more}
const url = process.argv[2] ?? "";
const client = new Redis(url);
for (const redis of ${given}) {
  configure({ redis });
  console.log(await pay("A1", (key) => client.get(key)), await client.get("LOCK_payOrder_A1"));
  await shutdown();
}
client.disconnect();
`,
      },
      { exactOptionalPropertyTypes: true },
    );
    await symlink(join(await installed(set), name), project.path(`node_modules/${name}`));
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/main.js", redis.url), {
      code: 0,
      stdout: "A1 under a request id null\n".repeat(name === "ioredis" ? 2 : 1),
      stderr: "",
    });
  });
}
