import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startRedis } from "../support/redis-server";
import { inTrial, STEPS, type Supplies } from "./steps";
import { STARTERS, type Starter } from "./starters";

// npm run proof -- starters, or some of them: npm run proof -- starters vite nest-11
//
// Creates a project with each starter, and does what a new user of Lockweave does. KEEP=1 keeps the projects.

const REPOSITORY = join(__dirname, "../..");
const CACHE = join(tmpdir(), "lockweave-starters");
const NODE = "node@24";
const execute = promisify(execFile);

async function main(): Promise<void> {
  const starters = chosen(process.argv.slice(2));
  const dir = await mkdtemp(join(tmpdir(), "starters-"));
  const redis = await startRedis();
  const results: string[] = [];
  try {
    const lockweave = await pack(dir);
    for (const starter of starters) {
      const path = await Promise.all([NODE, ...(starter.tools ?? [])].map(programsOf));
      const failed = await tryOut(starter, { lockweave, path, redis });
      if (failed.length > 0) process.exitCode = 1;
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
      failed.push(name);
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

/** Installs the package once for all runs. Returns the directory of its programs. */
async function programsOf(spec: string): Promise<string> {
  const dir = join(CACHE, spec.replaceAll("/", "-"));
  if (!existsSync(dir)) {
    await mkdir(CACHE, { recursive: true });
    const fresh = await mkdtemp(join(CACHE, "installing-"));
    await writeFile(join(fresh, "package.json"), "{}");
    await execute("npm", ["install", "--no-audit", "--no-fund", spec], { cwd: fresh });
    await rename(fresh, dir).catch(() => rm(fresh, { recursive: true })); // Another run was faster.
  }
  return join(dir, "node_modules/.bin");
}

void main();
