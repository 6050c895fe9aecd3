import { mkdir, rm, symlink } from "node:fs/promises";
import { build, type BuildOptions } from "esbuild";
import lockweavePlugin from "lockweave/esbuild";
import { makeProject, tsconfig, type Project } from "../hosts/project";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { lockweave } from "./command";

// A workspace like those of Nx: TypeScript builds the libraries, and a bundler builds each application from the sources of the libraries.

const PAY = `export class Payments {
  /** @redisLock businessFlag=pay keyName=order.id */
  async pay(order: { id: string }): Promise<string> {
    return await Promise.resolve(order.id);
  }
}
`;
const SOURCE_FIRST = { exports: { ".": { "@acme/source": "./src/index.ts", default: "./dist/index.js" } } };
const LIBRARY = { composite: true, declaration: true, outDir: "dist" };
const APPLICATION = { ...LIBRARY, emitDeclarationOnly: true };

/** The library `@acme/pay` has the tag, `@acme/shop` passes it on, and the application imports only `@acme/shop`. */
async function workspace(main = 'import { Shop } from "@acme/shop";\nvoid new Shop();\n'): Promise<Project> {
  const manifest = (name: string, others: object): string =>
    JSON.stringify({ name, type: "module", ...others });
  const references = (...names: string[]): object => ({
    include: ["src"],
    references: names.map((name) => ({ path: `../../packages/${name}` })),
  });
  const project = await makeProject({
    "nx.json": "{}",
    "tsconfig.json": JSON.stringify({
      files: [],
      references: ["packages/pay", "packages/shop", "apps/api"].map((path) => ({ path })),
    }),
    "packages/pay/package.json": manifest("@acme/pay", SOURCE_FIRST),
    "packages/pay/tsconfig.json": tsconfig(LIBRARY),
    "packages/pay/src/index.ts": PAY,
    "packages/shop/package.json": manifest("@acme/shop", SOURCE_FIRST),
    "packages/shop/tsconfig.json": tsconfig(LIBRARY, references("pay")),
    "packages/shop/src/index.ts":
      'import { Payments } from "@acme/pay";\nexport class Shop {\n  readonly payments = new Payments();\n}\n',
    "apps/api/package.json": manifest("@acme/api", {
      nx: {
        targets: { build: { executor: "@nx/esbuild:esbuild", options: { outputPath: "apps/api/out" } } },
      },
    }),
    "apps/api/tsconfig.json": tsconfig(APPLICATION, references("shop")),
    "apps/api/src/main.ts": main,
  });
  await mkdir(project.path("node_modules/@acme"));
  for (const name of ["pay", "shop"]) {
    await symlink(project.path(`packages/${name}`), project.path(`node_modules/@acme/${name}`));
  }
  const { code, stdout } = await project.tspc("-b");
  if (code !== 0) throw new Error(stdout);
  return project;
}

async function bundle(project: Project, options: BuildOptions = {}): Promise<void> {
  await build({
    absWorkingDir: project.dir,
    entryPoints: ["apps/api/src/main.ts"],
    outfile: project.path("apps/api/out/main.js"),
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "bundle",
    external: ["lockweave"],
    conditions: ["@acme/source"],
    logLevel: "silent",
    ...options,
  });
}

async function check(project: Project, ...args: string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await lockweave(project, "check", ...args);
  return { code, said: stdout + stderr };
}

outsideMatrixSerially("check reports an application that bundles a library without its locks", async (t) => {
  const project = await workspace();
  const said =
    "The lock of the only tag is in the output. The types in tags were checked, except for `packages/pay/tsconfig.json`, `packages/shop/tsconfig.json`, where `tspc` checks them.\n";
  t.deepEqual(await check(project), { code: 0, said }, "nothing is bundled yet");
  await bundle(project);
  const found = await check(project);
  t.is(found.code, 1, found.said);
  t.deepEqual(found.said.trimEnd().split("\n"), [
    "packages/pay/src/index.ts:2:7: Cannot verify the lock of `Payments.pay`: `apps/api/out/main.js` has a copy without its lock.",
    "-> Another tool compiled the sources once more. Add Lockweave's plugin to it, which `npx lockweave init` does for the common ones, and build again. If nothing runs these files, delete them.",
  ]);
  await bundle(project, { plugins: [lockweavePlugin()] });
  t.deepEqual(await check(project), { code: 0, said }, "the plugin weaves the copy");
});

outsideMatrixSerially(
  "check says that it did not check a minified bundle without a source map",
  async (t) => {
    const project = await workspace(
      'import { Shop } from "@acme/shop";\nvoid new Shop().payments.pay({ id: "1" });\n',
    );
    await bundle(project, { minify: true, mangleProps: /^pay/ });
    const { code, said } = await check(project);
    t.is(code, 0, said);
    t.true(
      said.includes(
        "Another tool wrote `apps/api/out`, and not all locks were found there. To check that output, run `npx lockweave check --output apps/api/out`.",
      ),
      said,
    );
    const { stdout } = await lockweave(project, "check", "--json");
    t.deepEqual((JSON.parse(stdout) as { unchecked: string[] }).unchecked, ["apps/api/out"]);
    t.is((await check(project, "--output", "apps/api/out")).code, 1);
    await bundle(project, { minify: true, mangleProps: /^pay/, sourcemap: true });
    t.is((await check(project)).code, 1, "a source map shows what the minifier hides");
  },
);

inMatrixSerially(
  "check reports an unlocked copy in a file that a package script writes or starts",
  async (t) => {
    for (const [settings, outfile] of [
      [{ main: "build/main.js" }, "build/main.js"],
      [{ scripts: { build: "esbuild src/main.ts --bundle --outfile=build/main.cjs" } }, "build/main.cjs"],
      [{ scripts: { start: "node --enable-source-maps build/main.mjs" } }, "build/main.mjs"],
    ] as const) {
      const project = await workspace();
      await project.write({ "apps/api/package.json": JSON.stringify({ type: "module", ...settings }) });
      await bundle(project, { outfile: project.path(`apps/api/${outfile}`) });
      const { code, said } = await check(project);
      t.is(code, 1, said);
      t.true(said.includes(`\`apps/api/${outfile}\` has a copy without its lock`), said);
    }
  },
);

inMatrixSerially("check accepts a bundle with another function of the same name", async (t) => {
  const project = await workspace(
    "export class Other {\n  async pay(order: { id: string }): Promise<string> {\n    return await Promise.resolve(order.id);\n  }\n}\n",
  );
  await bundle(project);
  const { code, said } = await check(project);
  t.is(code, 0, said);
});

inMatrixSerially("check does not mention a bundle that uses no library with tags", async (t) => {
  const project = await workspace("export const answer = 42;\n");
  await bundle(project);
  const { code, said } = await check(project);
  t.is(code, 0, said);
  t.false(said.includes("Another tool"), said);
  await rm(project.path("apps/api/out"), { recursive: true });
});
