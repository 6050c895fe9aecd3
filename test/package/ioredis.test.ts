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

/** iovalkey is a copy of ioredis. */
const LIBRARIES = [
  ["ioredis", 5],
  ["ioredis", 6],
  ["iovalkey", 0],
] as const;

/** Installs a major version of the package if needed. Returns its directory. */
async function installed(name: string, major: number): Promise<string> {
  const ours = join(PACKAGE, "node_modules/ioredis");
  const { version } = require(join(ours, "package.json")) as { version: string };
  if (name === "ioredis" && version.startsWith(`${major}.`)) return ours;
  const dir = await temporaryDirectory();
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", dir];
  await execute("npm", [...args, `${name}@${major}`], { cwd: dir });
  return join(dir, "node_modules", name);
}

for (const [name, major] of LIBRARIES) {
  inMatrix(`the types accept a client of ${name} ${major}, and it holds locks`, async (t) => {
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
    await symlink(await installed(name, major), project.path(`node_modules/${name}`));
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/main.js", redis.url), {
      code: 0,
      stdout: "A1 under a request id null\n".repeat(name === "ioredis" ? 2 : 1),
      stderr: "",
    });
  });
}
