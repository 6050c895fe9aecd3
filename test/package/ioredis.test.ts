import { symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { installed } from "../hosts/installed";
import { startRedis } from "../support/redis-server";
import { makeConsumer } from "./consumer";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

/** iovalkey is a copy of ioredis. */
const LIBRARIES = [
  ["ioredis", "ioredis-5"],
  ["ioredis", "ioredis-6"],
  ["iovalkey", "iovalkey"],
] as const;

for (const [name, set] of LIBRARIES) {
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
import { configure, redisStore, shutdown, type Store } from "lockweave";
import { pay } from "./order.js";

export const ofCluster = (cluster: Cluster): Store => redisStore(cluster);

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
      { exactOptionalPropertyTypes: true, skipLibCheck: true },
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
