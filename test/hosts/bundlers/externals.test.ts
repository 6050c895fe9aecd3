import { symlink } from "node:fs/promises";
import test from "ava";
import packageJson from "../../../package.json";
import type { Files, Finished } from "../project";
import { recipe } from "./recipes";
import { bundle, projectOf, SAMPLED, type Bundler } from "./bundlers";

// The bundle leaves out a package of the workspace, which is linked into `node_modules`. Node loads what the package exports.

const PAY = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id) { return id; }
`;
const LOCKED = `import * as lockweave from "lockweave/runtime";
export async function pay(id) {
  const lock = lockweave.open({ site: "pay", businessFlag: "pay" }, id);
  while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
  try {
    lockweave.assertHeld(lock);
    return id;
  } catch (error) {
    throw lockweave.fail(lock, error);
  } finally {
    await lockweave.release(lock);
  }
}
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { pay } from "shop";
configure({ store: memoryStore() });
console.log(pay);
`;

/** The setting in the docs that makes each bundler leave the package out. */
const LEFT_OUT: Readonly<Record<string, readonly [before: string, after: string]>> = {
  esbuild: ["", ""],
  Rollup: [`"lockweave/runtime"`, `"lockweave/runtime", "shop"`],
  Rolldown: [`"lockweave/runtime"`, `"lockweave/runtime", "shop"`],
  Vite: ["rollupOptions: {", `rollupOptions: { external: ["shop"],`],
  tsup: ["", ""],
  tsdown: ["", ""],
  webpack: ["externals: {", `externals: { shop: "module shop",`],
  Rspack: ["externals: {", `externals: { shop: "module shop",`],
};

async function built(bundler: Bundler, entry: string, files: Files): Promise<Finished> {
  const project = await projectOf(bundler, {
    "src/main.ts": MAIN,
    "packages/shop/package.json": JSON.stringify({ name: "shop", type: "module", exports: entry }),
    ...files,
  });
  const dependencies = { lockweave: packageJson.version, shop: "1.0.0" };
  await project.write({ "package.json": JSON.stringify({ type: "module", dependencies }) });
  const { file: config } = recipe(bundler.name);
  const [before, after] = LEFT_OUT[bundler.name] ?? ["", ""];
  await project.write({ [config]: (await project.read(config)).replace(before, after) });
  await symlink(project.path("packages/shop"), project.path("node_modules/shop"));
  return bundle(project, bundler);
}

for (const bundler of SAMPLED) {
  const { name } = bundler;
  const ofSources: Files = {
    "packages/shop/src/index.ts": `export * from "./pay.ts";\n`,
    "packages/shop/src/pay.ts": PAY.replace("(id)", "(id: string)"),
  };

  test(`${name}: a linked package that exports TypeScript with tags is an error if the bundle leaves it out`, async (t) => {
    const { code, stdout, stderr } = await built(bundler, "./src/index.ts", ofSources);
    t.not(code, 0, stdout + stderr);
    t.regex(
      stdout + stderr,
      /src\/main\.ts[:(]2[:,].*LW1406: This imports `?pay`? with `?@redisLock`? from `?pay\.ts/s,
    );
  });

  test(`${name}: a comment with a reason allows the import of a linked package that exports TypeScript`, async (t) => {
    const reason = "// lockweave-allow LW1406: lockweave/register loads it\n";
    const { code, stdout, stderr } = await built(bundler, "./src/index.ts", {
      ...ofSources,
      "src/main.ts": MAIN.replace(/(?=import \{ pay)/, reason),
    });
    t.is(code, 0, stdout + stderr);
  });

  test(`${name}: JavaScript of a package outside of the bundle must contain its locks`, async (t) => {
    const unlocked = await built(bundler, "./dist/index.js", { "packages/shop/dist/index.js": PAY });
    t.not(unlocked.code, 0, unlocked.stdout + unlocked.stderr);
    t.regex(unlocked.stdout + unlocked.stderr, /LW1403: This imports `?pay`?/);
    const locked = await built(bundler, "./dist/index.js", { "packages/shop/dist/index.js": LOCKED });
    t.is(locked.code, 0, locked.stdout + locked.stderr);
  });
}
