import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pack, temporaryDirectory } from "./consumer";
import { startRedis } from "../support/redis-server";
import { versionIn } from "../hosts/installed";
import { inMatrix } from "../support/suites";

const execute = promisify(execFile);

inMatrix("a production install leaves out the compiler that the application builds with", async (t) => {
  const { tarball } = await pack();
  const dir = await temporaryDirectory();
  const manifest = {
    name: "application",
    private: true,
    dependencies: { lockweave: `file:${tarball}` },
    devDependencies: { typescript: "6.0.3", "ts-patch": "3.3.0" },
  };
  await writeFile(join(dir, "package.json"), JSON.stringify(manifest));
  await execute("npm", ["install", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"], {
    cwd: dir,
  });
  const installed = readdirSync(join(dir, "node_modules")).filter((name) => !name.startsWith("."));
  t.deepEqual(installed.toSorted(), ["lockweave", "uuid"]);
  const script =
    'import { configure, memoryStore, withLock } from "lockweave"; configure({ store: memoryStore(), woven: false }); console.log(await withLock("k", {}, () => "locked"));';
  const { stdout } = await execute(process.execPath, ["--input-type=module", "--eval", script], { cwd: dir });
  t.is(stdout, "locked\n");
});

const LOCK_OVER_URL = `configure({ redis: process.env["REDIS_URL"], woven: false });
withLock("LOCK_installed", {}, () => "locked").then(console.log).then(() => shutdown());
`;
const WEBPACK = `import webpack from "webpack";

const options = {
  mode: "production",
  target: "node",
  entry: "./main.mjs",
  experiments: { outputModule: true },
  output: { path: import.meta.dirname + "/dist", filename: "bundle.mjs", module: true, chunkFormat: "module" },
};
webpack(options, (error, stats) => {
  if (error !== null || stats.hasErrors()) throw error ?? new Error(stats.toString("errors-only"));
});
`;

inMatrix(
  "a production install with node-redis as the only client connects by URL, even if webpack bundles it",
  async (t) => {
    const server = await startRedis();
    t.teardown(() => server.stop());
    const { tarball } = await pack();
    const dir = await temporaryDirectory();
    const manifest = {
      name: "application",
      private: true,
      dependencies: { lockweave: `file:${tarball}`, redis: versionIn("runtimes", "redis") },
    };
    const files = {
      "package.json": JSON.stringify(manifest),
      "main.mjs": `import { configure, shutdown, withLock } from "lockweave";\n${LOCK_OVER_URL}`,
      "main.cjs": `const { configure, shutdown, withLock } = require("lockweave");\n${LOCK_OVER_URL}`,
      "build.mjs": WEBPACK,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
    const install = async (...args: string[]): Promise<void> => {
      await execute("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...args], { cwd: dir });
    };
    const run = async (file: string): Promise<string> => {
      const env = { ...process.env, REDIS_URL: server.url };
      return (await execute(process.execPath, [file], { cwd: dir, env })).stdout;
    };
    await install("--omit=dev");
    const installed = readdirSync(join(dir, "node_modules"));
    t.deepEqual(
      ["ioredis", "pg", "postgres", "typescript"].filter((name) => installed.includes(name)),
      [],
    );
    t.is(await run("main.mjs"), "locked\n");
    t.is(await run("main.cjs"), "locked\n");
    await install("--no-save", `webpack@${versionIn("webpack", "webpack")}`);
    t.is(await run("build.mjs"), "");
    t.is(await run("dist/bundle.mjs"), "locked\n");
  },
);
