import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import type { Redis } from "ioredis";
import { installed, packagesIn, versionIn } from "../hosts/installed";
import { startRedis, type RedisServer } from "../support/redis-server";
import { BUN_TESTS } from "./bun-client";
import { FILES } from "./runtime-program";

// Runs one program on Bun and Deno, in each way to weave it, and checks that it locks, renews, shuts down, and excludes Node.
// The argument `Bun` or `Deno` runs only that runtime.

const REPOSITORY = join(__dirname, "../..");

interface Runtime {
  readonly name: string;
  program(): Promise<string>;
  /** The stores of the program in Redis, each with another one that contends with it on Node. */
  readonly clients: Readonly<Record<string, string>>;
  /** The arguments before the program's own, by the way to weave. */
  readonly ways: Readonly<Record<string, readonly string[]>>;
}

const BUILT = ["out/main.js"];

const CLIENTS = { url: "node-redis", ioredis: "node-redis", "node-redis": "ioredis" };

const BUN: Runtime = {
  name: "Bun",
  clients: { ...CLIENTS, bun: "ioredis" },
  program: async () => join(await installed("bun"), "bun/bin/bun.exe"),
  ways: {
    "lockweave/register": ["--preload", "lockweave/register", "src/main.ts"],
    "lockweave build": BUILT,
    "the plugin of Bun.build()": ["bundle/main.js"],
  },
};

const DENO: Runtime = {
  name: "Deno",
  clients: CLIENTS,
  program: async () => join(await installed("deno"), "deno/deno"),
  ways: {
    "lockweave/register": ["run", "--allow-all", "--preload", "./lockweave-register.ts", "src/main.ts"],
    "lockweave build": ["run", "--allow-net", "--allow-env", "--allow-read", ...BUILT],
  },
};

const NODE = { program: async () => process.execPath };

const SECTIONS = 25;
const KILL_EVERY_MS = 150;
const AT_MOST_MS = 180_000;

const PROJECT_FILES = {
  "package.json": JSON.stringify({ type: "module" }),
  "tsconfig.json": JSON.stringify({
    compilerOptions: {
      target: "es2022",
      lib: ["es2023"],
      types: ["node"],
      module: "nodenext",
      rewriteRelativeImportExtensions: true,
      strict: true,
      noImplicitAny: false,
      skipLibCheck: true,
      rootDir: "src",
      outDir: "out",
    },
    include: ["src"],
  }),
  "lockweave-register.ts": 'import "lockweave/register";\n',
  "bundle.mjs": `import lockweave from "lockweave/esbuild";
await Bun.build({
  entrypoints: ["src/main.ts", "src/worker.ts"],
  outdir: "bundle",
  target: "node",
  packages: "external",
  plugins: [lockweave()],
});
`,
  ...FILES,
  ...BUN_TESTS,
};

// ---- processes ------------------------------------------------------------------------------------------

interface Ended {
  /** The exit code or the signal. */
  readonly how: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

class Project {
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Installs the package as a user does, and weaves the program in the ways that need a build. */
  static async make(): Promise<Project> {
    const dir = await mkdtemp(join(tmpdir(), "runtimes-"));
    const project = new Project(dir);
    for (const [file, text] of Object.entries(PROJECT_FILES)) {
      await mkdir(dirname(join(dir, file)), { recursive: true });
      await writeFile(join(dir, file), text);
    }
    const packages = packagesIn("runtimes").map((name) => `${name}@${versionIn("runtimes", name)}`);
    const args = ["install", "--install-links", "--no-audit", "--no-fund", "--prefer-offline"];
    await promisify(execFile)("npm", [...args, REPOSITORY, ...packages], { cwd: dir });
    const cli = "node_modules/lockweave/dist/transformer/cli/main.js";
    for (const [runtime, file, ...rest] of [[NODE, cli, "build"] as const, [BUN, "bundle.mjs"] as const]) {
      const { how, stdout, stderr } = await project.run(await runtime.program(), [file, ...rest]);
      if (how !== 0) throw new Error(stdout + stderr);
    }
    return project;
  }

  /** @param onPrint called each time the process prints something */
  async run(
    program: string,
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    onPrint: (kill: (signal: NodeJS.Signals) => void) => void = () => {},
  ): Promise<Ended> {
    const child = spawn(program, args, {
      cwd: this.#dir,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      onPrint((signal) => child.kill(signal));
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const tooLate = setTimeout(() => child.kill("SIGKILL"), AT_MOST_MS);
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    clearTimeout(tooLate);
    return { how: code ?? signal, stdout, stderr };
  }

  async remove(): Promise<void> {
    await rm(this.#dir, { recursive: true });
  }
}

// ---- checks ---------------------------------------------------------------------------------------------

/** A way to run the program, and a database of its own. */
interface Subject {
  readonly project: Project;
  readonly program: string;
  readonly args: readonly string[];
  readonly store: string;
  /** The store of a process on Node. */
  readonly other: string;
  readonly url: string;
  readonly redis: Redis;
}

/** @throws if the subject fails the check */
type Check = (subject: Subject) => Promise<void>;

/** The checks of stores in Redis. The memory store passes only the first one. */
const CHECKS: Readonly<Record<string, Check>> = {
  async "locks, renews, and leaves nothing open"({ project, program, args, store, url, redis }) {
    const ended = await project.run(program, [...args, "sections", store, url]);
    expect(ended, 0, "first enters, its lock is renewed twice, second enters\n");
    await expectNoLocks(redis);
  },

  async "excludes another process on Node while connections are killed"(subject) {
    const { project, program, args, store, other, url, redis } = subject;
    const contend = (using: string): string[] => ["contend", using, url, String(SECTIONS)];
    const both = Promise.all([
      project.run(program, [...args, ...contend(store)]),
      project.run(process.execPath, [...BUILT, ...contend(other)]),
    ]);
    const kills = await killConnections(redis, both);
    for (const ended of await both) expect(ended, 0, "done\n");
    if (kills === 0) throw new Error("no connection was killed");
    // A process that ends does not repeat its last release for long. If a kill prevents it, the lock expires.
    while ((await redis.keys("LOCK_*")).length > 0) await pause(KILL_EVERY_MS);
    await expectSections(redis);
  },

  async "excludes a worker thread"({ project, program, args, store, url, redis }) {
    const ended = await project.run(program, [...args, "threads", store, url, String(SECTIONS)]);
    expect(ended, 0, "done\n");
    const first = (await expectSections(redis)).slice(0, SECTIONS);
    if (new Set(first).size !== 2) throw new Error("one thread waited for all sections of the other");
  },

  async "releases on SIGTERM, and ends by it"({ project, program, args, store, url, redis }) {
    let isHeld: Promise<unknown> | undefined;
    const ended = await project.run(program, [...args, "signal", store, url], {}, (kill) => {
      if (isHeld !== undefined) return;
      isHeld = redis.exists("LOCK_ship_A1");
      kill("SIGTERM");
    });
    expect(ended, "SIGTERM", "holds\nreleased\n");
    if ((await isHeld) !== 1) throw new Error("the lock was not in Redis");
    await expectNoLocks(redis);
  },
};

function expect({ how, stdout, stderr }: Ended, expectedHow: number | string, expected: string): void {
  if (how === expectedHow && stdout === expected && stderr === "") return;
  throw new Error(`It ended with ${how}, and printed:\n${stdout}${stderr}`);
}

async function expectNoLocks(redis: Redis): Promise<void> {
  const left = await redis.keys("LOCK_*");
  if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
}

/** Expects that both contenders ran all of their sections, and that no section overlapped with another. Returns who entered, in order. */
async function expectSections(redis: Redis): Promise<string[]> {
  const overlaps = await redis.get("overlaps");
  if (overlaps !== null) throw new Error(`${overlaps} sections overlapped`);
  const entered = await redis.lrange("entered", 0, -1);
  if (entered.length !== 2 * SECTIONS)
    throw new Error(`${entered.length} sections instead of ${2 * SECTIONS}`);
  await expectNoLocks(redis);
  return entered;
}

/** Kills connections to the database until the last section has begun, or the processes end. Returns the number of kills. */
async function killConnections(redis: Redis, processes: Promise<unknown>): Promise<number> {
  let kills = 0;
  const over = new AbortController();
  void processes.finally(() => over.abort());
  const database = `db=${redis.options.db} `;
  while (!over.signal.aborted && (await redis.llen("entered")) < 2 * SECTIONS) {
    await pause(KILL_EVERY_MS);
    const clients = String(await redis.client("LIST")).split("\n");
    const victims = clients.filter((line) => line.includes(database) && !/ name=(?:judge|test) /.test(line));
    const [id] = /(?<=id=)\d+/.exec(victims[kills % victims.length] ?? "") ?? [];
    if (id !== undefined) kills += Number(await redis.client("KILL", "ID", id));
  }
  return kills;
}

// ---- the matrix -----------------------------------------------------------------------------------------

/** More at once would slow down the processes whose connections a check kills. They would need ever more connections. */
const AT_ONCE = availableParallelism();

async function main(): Promise<void> {
  const server = await startRedis("--databases", "256");
  const project = await Project.make();
  const [only] = process.argv.slice(2);
  const waiting: (() => Promise<boolean>)[] = [];
  for (const { name, program, clients, ways } of [BUN, DENO]) {
    if (only !== undefined && only !== name) continue;
    for (const [way, args] of Object.entries(ways)) {
      const subject = { project, program: await program(), args };
      for (const [what, check] of Object.entries(CHECKS)) {
        const isFirst = check === Object.values(CHECKS)[0];
        for (const [store, other] of Object.entries({ ...(isFirst && { memory: "" }), ...clients })) {
          const title = `${name}, woven by ${way}, ${store}: ${what}`;
          waiting.push(() => passes(title, check, { ...subject, store, other }, server));
        }
      }
    }
  }
  let failed = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        if (!(await next())) failed += 1;
      }
    }),
  );
  if (only !== DENO.name) failed += await testClientOfBun(project, server);
  await project.remove();
  await server.stop();
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Runs the check, and prints its result. */
async function passes(
  title: string,
  check: Check,
  subject: Omit<Subject, "url" | "redis">,
  server: RedisServer,
): Promise<boolean> {
  const startedAt = performance.now();
  const complaint = await complaintOf(check, subject, server);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${complaint === undefined ? "✔" : "✘"} ${title} (${seconds} s)`);
  if (complaint !== undefined) console.log(complaint.replaceAll(/^/gm, "    "));
  return complaint === undefined;
}

/** Returns the number of files with a failed test. */
async function testClientOfBun(project: Project, server: RedisServer): Promise<number> {
  let failed = 0;
  for (const file of Object.keys(BUN_TESTS)) {
    const args = ["test", "--timeout", String(AT_MOST_MS), `./${file}`];
    const { how, stderr } = await project.run(await BUN.program(), args, { REDIS_URL: server.url });
    console.log(`${how === 0 ? "✔" : "✘"} Bun's RedisClient passes ${file}`);
    if (how === 0) continue;
    failed += 1;
    console.log(stderr);
  }
  return failed;
}

let databases = 0;

async function complaintOf(
  check: Check,
  subject: Omit<Subject, "url" | "redis">,
  server: RedisServer,
): Promise<string | undefined> {
  const db = (databases += 1);
  const redis = server.client({ db, connectionName: "test" });
  try {
    await check({ ...subject, url: `${server.url}/${db}`, redis });
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    redis.disconnect();
  }
}

void main();
