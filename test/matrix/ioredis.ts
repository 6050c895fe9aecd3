import { spawn, execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed, packagesIn, type SetName } from "../hosts/installed";

// Tests the stores with the oldest ioredis in the peer dependencies, with the newest of each major version, with iovalkey, which is a copy
// of ioredis, and with node-redis 5. The installed packages stay as they are: a hook gives the tests another one.

interface Library {
  /** The name by which the tests load it. */
  readonly name: "ioredis" | "redis";
  /** The sets with a package that the tests load by that name. */
  readonly sets: readonly SetName[];
  /** The arguments of each run of the tests. */
  readonly tests: readonly (readonly string[])[];
  /** The arguments for the tests of the matrix over this library. */
  readonly ofMatrix: readonly string[];
}

const OF_MATRIX = ["test/stores/every-client.test.ts", "test/faults/lost-replies.test.ts"];
const matching = (...titles: readonly string[]): string[] => titles.flatMap((title) => ["--match", title]);

const LIBRARIES: readonly Library[] = [
  {
    name: "ioredis",
    sets: ["ioredis-5.4", "ioredis-5", "ioredis-6", "iovalkey"],
    tests: [
      [
        "test/stores/redis-{contract,cluster,slots,replicas,wake-ups,connection,address,many,lost-replies,access}.test.ts",
        "test/stores/quorum/redis-masters.test.ts",
      ],
      ["test/faults/lost-replies.test.ts", ...matching("!over *", "!in PostgreSQL*")],
    ],
    ofMatrix: [...OF_MATRIX, ...matching("*ioredis: *")],
  },
  {
    name: "redis",
    sets: ["redis-5"],
    tests: [
      // A pool of node-redis 5 has no key prefix, which the contract over a pool uses.
      ["test/{stores/redis-{contract,slots},faults/lost-replies}.test.ts", ...matching("*over node-redis*")],
      ["test/stores/node-redis.test.ts", ...matching("a client that * is reported *", "close*", "locks *")],
    ],
    ofMatrix: [...OF_MATRIX, ...matching("*redis*: *", "!*ioredis: *", "!over a cluster *")],
  },
];

const OF_IOREDIS = ["test/faults/{cluster,sentinel}.test.ts", ...matching("no two bodies*")];

/** Plays rounds of faults over some of these packages. */
const ROUNDS: Readonly<Partial<Record<SetName, readonly string[]>>> = {
  "ioredis-5": OF_IOREDIS,
  iovalkey: OF_IOREDIS,
  // Not in a cluster, where a client of node-redis 5 may never reconnect.
  "redis-5": ["test/faults/sentinel.test.ts", ...matching("over node-redis: *")],
};
const ONE_ROUND = { CLUSTER_ROUNDS: "1", SENTINEL_ROUNDS: "1" };

const REPOSITORY = join(__dirname, "../..");

/** Returns a hook that makes `require()` of the library load that file. */
const hookFor = (library: string, entry: string): string => `
const Module = require("node:module");
const entry = ${JSON.stringify(entry)};
const resolve = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  return request === "${library}" ? entry : resolve.call(this, request, ...rest);
};
`;

async function main(): Promise<void> {
  let failed = 0;
  for (const library of LIBRARIES) {
    for (const set of library.sets) if (!(await passes(library, set))) failed += 1;
  }
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Runs the tests with the package of the set, and prints the result. */
async function passes({ name, tests, ofMatrix }: Library, set: SetName): Promise<boolean> {
  const hook = await hookOf(name, set);
  const env = { ...process.env, NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --require ${hook}` };
  const startedAt = performance.now();
  const complaints: (string | undefined)[] = [];
  for (const args of tests) complaints.push(await runTests(args, env));
  complaints.push(await runTests(ofMatrix, { ...env, MATRIX: "1" }));
  const rounds = ROUNDS[set];
  if (rounds !== undefined) complaints.push(await runTests(rounds, { ...env, ...ONE_ROUND }, "5m"));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const complaint = complaints.filter((one) => one !== undefined).join("\n");
  console.log(`${complaint === "" ? "✔" : "✘"} ${await packageUnder(name, env)} (${seconds} s)`);
  if (complaint !== "") console.log(complaint.replaceAll(/^/gm, "    "));
  return complaint === "";
}

/** @returns the path of the hook */
async function hookOf(library: string, set: SetName): Promise<string> {
  const [name = ""] = packagesIn(set);
  const entry = createRequire(join(await installed(set), "index.js")).resolve(name);
  const hook = join(await mkdtemp(join(tmpdir(), `hook-${set}-`)), "hook.cjs");
  await writeFile(hook, hookFor(library, entry));
  return hook;
}

/** The name and the version of the package that the tests used. */
async function packageUnder(library: string, env: NodeJS.ProcessEnv): Promise<string> {
  const script = `const { dirname } = require("node:path");
    const { name, version } = require(dirname(require.resolve("${library}")) + "/../package.json");
    console.log(name, version)`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--eval", script], {
    cwd: REPOSITORY,
    env,
  });
  return stdout.trim();
}

/** Returns the output about failed tests, or `undefined` if all passed. */
async function runTests(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  timeout = "120s",
): Promise<string | undefined> {
  const ava = join(REPOSITORY, "node_modules/.bin/ava");
  const child = spawn(ava, ["--concurrency", "4", "--timeout", timeout, ...args], {
    cwd: REPOSITORY,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  const isOfInterest = (line: string): boolean => line.trim() !== "" && !line.includes("✔");
  return code === 0 ? undefined : output.split("\n").filter(isOfInterest).join("\n");
}

void main();
