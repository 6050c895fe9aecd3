import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import { SETS } from "../hosts/installed";
import { temporaryDirectory } from "../package/consumer";
import { debian } from "./packages.json";
import { PARTS } from "./parts";

interface Ended {
  readonly code: unknown;
  readonly output: string;
}

function matrix(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const all = ["--require", "ts-node/register/transpile-only", join(__dirname, "all.ts"), ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, all, { env: { ...process.env, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }),
    );
  });
}

for (const [args, words] of [
  [["tortur"], "No part tortur. The parts are hosts, explore, "],
  [["--from", "nowhere"], "No part nowhere. The parts are hosts, explore, "],
  [
    ["hosts", "--from", "servers"],
    "No part that you named comes after servers. The order is hosts, explore, ",
  ],
  [["--minutes", "soon"], "--minutes soon is not a positive number."],
] as const) {
  test(`the matrix refuses the arguments ${args.join(" ")}`, async (t) => {
    const { code, output } = await matrix(args);
    t.is(code, 2);
    t.true(output.includes(words), output);
  });
}

test("a part is not run if its packages cannot be installed, and neither fails nor passes", async (t) => {
  const { code, output } = await matrix(["ioredis"], {
    WITHOUT_INSTALLS: undefined,
    TMPDIR: await temporaryDirectory(),
    npm_config_cache: await temporaryDirectory(),
    npm_config_registry: "http://127.0.0.1:1",
    npm_config_fetch_retries: "0",
  });
  t.is(code, 75, output);
  t.regex(output, /# Why ioredis was not run\nnpm could not install the set ioredis-5\.4\n[^]*ECONNREFUSED/);
  t.regex(output, /# The parts of the matrix\n {2}– ioredis {5}not run {6}0 s\n$/);
});

test("each package of the matrix has an exact version", (t) => {
  for (const [set, packages] of Object.entries(SETS)) {
    for (const [name, version] of Object.entries(packages))
      t.regex(version, /^(?:npm:.+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/, `${set}: ${name}`);
  }
  for (const [server, { version }] of Object.entries(debian)) t.regex(version, /^[\d:]+\.[\w.+~-]+$/, server);
});

test("the nightly workflow runs each part of the matrix", (t) => {
  const workflow = readFileSync(join(__dirname, "../../.github/workflows/matrix.yml"), "utf8");
  const parts = [...workflow.matchAll(/^ {10}- (\w+)$/gm)].map(([, part]) => part);
  t.deepEqual(parts, Object.keys(PARTS));
});
