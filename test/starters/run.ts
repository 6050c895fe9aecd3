import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed } from "../hosts/installed";
import { startRedis } from "../support/redis-server";
import { inTrial, STEPS, type Supplies } from "./steps";
import { STARTERS, type Starter } from "./starters";

// npm run proof -- starters, or some of them: npm run proof -- starters vite nest-11
//
// Creates a project with each starter, and does what a new user of Lockweave does. KEEP=1 keeps the projects.

const REPOSITORY = join(__dirname, "../..");
/** The exit code if a starter could not be tried out because of the network, and none failed. */
const NOT_RUN = 75;
const UNREACHABLE = "the network failed";
const BY_NETWORK =
  /\b(?:EAI_AGAIN|ENOTFOUND|ECONNRESET|ECONNREFUSED|ETIMEDOUT|E429|E50\d|ERR_SOCKET_TIMEOUT)\b/;
const execute = promisify(execFile);

async function main(): Promise<void> {
  const starters = chosen(process.argv.slice(2));
  const dir = await mkdtemp(join(tmpdir(), "starters-"));
  const redis = await startRedis();
  const results: string[] = [];
  try {
    const lockweave = await pack(dir);
    for (const starter of starters) {
      const tools = await Promise.all((["node-24", ...(starter.tools ?? [])] as const).map(installed));
      const path = tools.map((modules) => join(modules, ".bin"));
      const failed = await tryOut(starter, { lockweave, path, redis });
      if (failed.length > 0)
        process.exitCode = failed.includes(UNREACHABLE) ? (process.exitCode ?? NOT_RUN) : 1;
      const by = starter.byHand === undefined ? "" : `, written by hand: ${starter.byHand}`;
      results.push(
        failed.length === 0 ? `  ✔ ${starter.name}${by}` : `  ✘ ${starter.name}: ${failed.join(", ")}${by}`,
      );
    }
  } finally {
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  }
  console.log(`\n# The starters\n${results.join("\n")}`);
}

function chosen(names: readonly string[]): readonly Starter[] {
  const unknown = names.filter((name) => !STARTERS.some((starter) => starter.name === name));
  if (unknown.length > 0) {
    console.error(
      `No starter ${unknown.join(", ")}. The starters are ${STARTERS.map(({ name }) => name).join(", ")}.`,
    );
    process.exit(2);
  }
  return names.length === 0 ? STARTERS : STARTERS.filter(({ name }) => names.includes(name));
}

/** Returns the names of the steps that failed. */
async function tryOut(starter: Starter, supplies: Supplies): Promise<string[]> {
  console.log(`\n# ${starter.name}`);
  const failed: string[] = [];
  await inTrial(starter, supplies, async (trial) => {
    for (const { name, isNeeded, run } of STEPS) {
      const startedAt = performance.now();
      const running = run(trial);
      if (running === undefined) {
        console.log(`  – ${name}: none`);
        continue;
      }
      const error = await running.then(
        () => undefined,
        (reason: unknown) => reason as Error,
      );
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      console.log(`  ${error === undefined ? "✔" : "✘"} ${name} (${seconds} s)`);
      if (error === undefined) continue;
      failed.push(isNeeded === true && BY_NETWORK.test(error.message) ? UNREACHABLE : name);
      console.log(error.message.replaceAll(/^/gm, "    "));
      if (isNeeded === true) return;
    }
  });
  return failed;
}

async function pack(dir: string): Promise<string> {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", dir];
  const { stdout } = await execute("npm", args, { cwd: REPOSITORY });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(dir, filename);
}

void main();
