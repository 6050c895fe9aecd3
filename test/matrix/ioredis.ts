import { spawn, execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

// Tests the stores with the oldest ioredis in the peer dependencies, and with the newest of each major version. The installed
// ioredis stays as it is: a hook gives the tests another one.

const VERSIONS = ["5.4.0", "5", "6"];
const TESTS = [
  "test/stores/redis-{contract,cluster,slots,replicas,hints,connection,address,many,lost-replies,access}.test.ts",
  "test/stores/quorum/redis-masters.test.ts",
];

const REPOSITORY = join(__dirname, "../..");

/** Makes `require("ioredis")` load the version beside the hook. */
const HOOK = `
const Module = require("node:module");
const entry = Module.createRequire(__filename).resolve("ioredis");
const resolve = Module._resolveFilename;
Module._resolveFilename = function (request, ...rest) {
  return request === "ioredis" ? entry : resolve.call(this, request, ...rest);
};
`;

async function main(): Promise<void> {
  let failed = 0;
  for (const version of VERSIONS) {
    const hook = await install(version);
    const env = { ...process.env, NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --require ${hook}` };
    const startedAt = performance.now();
    const complaint = await runTests(env);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${complaint === undefined ? "✔" : "✘"} ioredis ${await versionUnder(env)} (${seconds} s)`);
    if (complaint === undefined) continue;
    failed += 1;
    console.log(complaint.replaceAll(/^/gm, "    "));
  }
  process.exitCode = failed === 0 ? 0 : 1;
}

/** @returns the path of the hook */
async function install(version: string): Promise<string> {
  const dir = join(tmpdir(), "lockweave-matrix", `ioredis-${version}`);
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "package.json"), "{}");
  const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", `ioredis@${version}`];
  await promisify(execFile)("npm", args, { cwd: dir });
  const hook = join(dir, "hook.cjs");
  await writeFile(hook, HOOK);
  return hook;
}

/** The version of ioredis that the tests used. */
async function versionUnder(env: NodeJS.ProcessEnv): Promise<string> {
  const script = `const { dirname } = require("node:path");
    console.log(require(dirname(require.resolve("ioredis")) + "/../package.json").version)`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--eval", script], {
    cwd: REPOSITORY,
    env,
  });
  return stdout.trim();
}

/** Returns the output about failed tests, or `undefined` if all passed. */
async function runTests(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const ava = join(REPOSITORY, "node_modules/.bin/ava");
  const child = spawn(ava, ["--timeout", "120s", ...TESTS], {
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
