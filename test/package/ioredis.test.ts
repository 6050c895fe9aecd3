import { execFile } from "node:child_process";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { PACKAGE } from "../hosts/project";
import { startRedis } from "../support/redis-server";
import { makeConsumer, temporaryDirectory } from "./consumer";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

const execute = promisify(execFile);

/** Installs a major version of ioredis if needed. Returns its directory. */
async function installed(major: number): Promise<string> {
  const ours = join(PACKAGE, "node_modules/ioredis");
  const { version } = require(join(ours, "package.json")) as { version: string };
  if (version.startsWith(`${major}.`)) return ours;
  const dir = await temporaryDirectory();
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", dir];
  await execute("npm", [...args, `ioredis@${major}`], { cwd: dir });
  return join(dir, "node_modules/ioredis");
}

for (const major of [5, 6]) {
  inMatrix(`the types accept a client of ioredis ${major}, and it holds locks`, async (t) => {
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
        "src/main.ts": `import { Redis, type Cluster } from "ioredis";
import { configure, redisStore, shutdown, type Store } from "lockweave";
import { pay } from "./order.js";

export const ofCluster = (cluster: Cluster): Store => redisStore(cluster);

const url = process.argv[2] ?? "";
const client = new Redis(url);
for (const redis of [client, url]) {
  configure({ redis });
  console.log(await pay("A1", (key) => client.get(key)), await client.get("LOCK_payOrder_A1"));
  await shutdown();
}
client.disconnect();
`,
      },
      { exactOptionalPropertyTypes: true, skipLibCheck: true },
    );
    await symlink(await installed(major), project.path("node_modules/ioredis"));
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/main.js", redis.url), {
      code: 0,
      stdout: "A1 under a request id null\n".repeat(2),
      stderr: "",
    });
  });
}
