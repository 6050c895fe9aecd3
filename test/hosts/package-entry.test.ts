import { mkdir, symlink } from "node:fs/promises";
import { lockweave } from "../cli/command";
import { runTool } from "../cli/tools";
import { inMatrix, outsideMatrix } from "../support/suites";
import { makeProject, tsconfig, type Files, type Project, type Settings } from "./project";

// The application imports the sources of a workspace package that is linked into `node_modules`. The tests check who
// emits those sources and which files Node loads.

const PAY = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id; }
export interface Order { id: string }
`;
const OWN = `/** @redisLock businessFlag=own */
export async function own(): Promise<void> {}
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { pay } from "shop";
configure({ store: memoryStore() });
export const paid = pay("A1");
`;
const AT = "src/main.ts(2,21): error TS901406: LW1406: This imports `pay` with `@redisLock` from `pay.ts`";
const IN_CHECK = "src/main.ts:2:21: LW1406: This imports `pay`";

const LAX: Settings = { allowImportingTsExtensions: true, rewriteRelativeImportExtensions: true };

async function withShop(manifest: object, files: Files = {}, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(
    {
      "packages/shop/package.json": JSON.stringify({ name: "shop", type: "module", ...manifest }),
      "packages/shop/src/index.ts": `export * from "./pay.ts";\n`,
      "packages/shop/src/pay.ts": PAY,
      "src/main.ts": MAIN,
      ...files,
    },
    { ...LAX, ...settings },
  );
  await symlink(project.path("packages/shop"), project.path("node_modules/shop"));
  return project;
}

const AS_SOURCE = { exports: "./src/index.ts" };

outsideMatrix(
  "tags in TypeScript that a linked package exports are an error at the import, in the build and in the check",
  async (t) => {
    const project = await withShop(AS_SOURCE);
    const { code, stdout } = await project.tspc();
    t.is(code, 2);
    t.true(stdout.startsWith(AT), stdout);
    const checked = await lockweave(project, "check");
    t.is(checked.code, 1);
    t.true(checked.stderr.startsWith(IN_CHECK), checked.stderr);
  },
);

outsideMatrix(
  "a tag in a file that only the linked package imports is an error at the application's import",
  async (t) => {
    const project = await withShop(AS_SOURCE, {
      "packages/shop/src/index.ts": `import "./orders.ts";\nexport * from "./till.ts";\n`,
      "packages/shop/src/till.ts": `export { pay } from "./pay.ts";\n`,
      "packages/shop/src/orders.ts": `/** @redisLock businessFlag=order */\nexport async function order() {}\n`,
    });
    const { stdout } = await project.tspc();
    t.regex(stdout, /^src\/main\.ts\(2,21\): error TS901406: .* `order` .* from `orders\.ts`/m);
    t.regex(stdout, /^src\/main\.ts\(2,21\): error TS901406: .* `pay` .* from `pay\.ts`/m);
  },
);

for (const [what, line] of [
  ["a type-only import", `import type { Order } from "shop"; export let order: Order;`],
  ["a type-only export", `export type { Order } from "shop";`],
  ["an import type", `export let order: import("shop").Order;`],
  [
    "an import that a comment allows with a reason",
    `import { pay } from "shop"; // lockweave-allow LW1406: lockweave/register loads it\nexport { pay };`,
  ],
] as const) {
  outsideMatrix(`${what} of a linked package's TypeScript is not an error`, async (t) => {
    const project = await withShop(AS_SOURCE, {
      "src/main.ts": `${line}\n${OWN}`,
    });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await lockweave(project, "check"), { code: 0 });
  });
}

outsideMatrix("a comment that allows an import of TypeScript with tags must give a reason", async (t) => {
  const project = await withShop(AS_SOURCE, {
    "src/main.ts": MAIN.replace('"shop";', '"shop"; // lockweave-allow LW1406'),
  });
  const { code, stdout } = await project.tspc();
  t.is(code, 2);
  t.regex(stdout, /^src\/main\.ts\(2,32\): error TS901508: /);
});

inMatrix("a build that emits no code reports nothing, since a bundler may weave the sources", async (t) => {
  const project = await withShop(AS_SOURCE, {}, { noEmit: true });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  const declarations = await withShop(AS_SOURCE, {}, { declaration: true, emitDeclarationOnly: true });
  t.like(await declarations.tspc(), { code: 0, stdout: "" });
});

inMatrix("the check of a bundle also looks for the locks of linked sources", async (t) => {
  const project = await withShop(AS_SOURCE);
  const bundle = (name: string, plugins: string): Promise<unknown> =>
    runTool(
      project,
      "esbuild",
      `tool.build({ entryPoints: ["src/main.ts"], outfile: "${name}/main.js", bundle: true, format: "esm", external: ["lockweave"], plugins: ${plugins} })`,
    );
  await bundle("woven", '[require("lockweave/esbuild")()]');
  await bundle("plain", "[]");
  const woven = await lockweave(project, "check", "--output", "woven");
  t.like(woven, { code: 0 });
  t.regex(woven.stdout, /^The lock of the only tag is in the output\./);
  const plain = await lockweave(project, "check", "--output", "plain");
  t.is(plain.code, 1);
  t.regex(plain.stderr, /^packages\/shop\/src\/pay\.ts:1:5: Cannot verify the lock of `pay`/);
});

const TYPES_ALONE = { exports: { types: "./src/index.ts", default: "./dist/index.js" } };

inMatrix(
  "if only a package's types are sources, its tags are compared with the JavaScript that Node loads",
  async (t) => {
    const shop = { extends: "../../tsconfig.json", include: ["src"] };
    const project = await withShop(TYPES_ALONE, {
      "packages/shop/tsconfig.json": JSON.stringify({
        ...shop,
        compilerOptions: { rootDir: "src", outDir: "dist" },
      }),
    });
    t.deepEqual(
      await project.tspc(),
      { code: 0, stdout: "", stderr: "" },
      "without a build there is nothing to compare",
    );
    t.is((await project.tsc("-p", "packages/shop")).code, 0);
    const { code, stdout } = await project.tspc();
    t.is(code, 2);
    t.regex(
      stdout,
      /^src\/main\.ts\(2,21\): error TS901403: .* `pay` .* `pay\.js` does not contain the lock/,
    );
    t.is((await lockweave(project, "check")).code, 1);
    t.is((await project.tspc("-p", "packages/shop")).code, 0);
    t.like(await project.tspc(), { code: 0, stdout: "" });
  },
);

inMatrix(
  "importing a referenced project that exports its sources is an error until it exports its output",
  async (t) => {
    const project = await withShop(AS_SOURCE, {
      "packages/shop/tsconfig.json": tsconfig({ ...LAX, composite: true, rootDir: "src", outDir: "dist" }),
      "tsconfig.json": tsconfig(LAX, { include: ["src"], references: [{ path: "packages/shop" }] }),
    });
    const first = await project.tspc("-b");
    t.true(first.stdout.startsWith(AT), first.stdout + first.stderr);
    await project.write({
      "packages/shop/package.json": JSON.stringify({
        name: "shop",
        type: "module",
        exports: "./dist/index.js",
      }),
    });
    t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  },
);

/** Creates an application with a copy of the package in `node_modules`. */
async function withInstalled(
  settings: Settings = {},
  line = 'import { pay } from "shop";',
): Promise<Project> {
  const project = await makeProject(
    { "src/main.ts": MAIN.replace('import { pay } from "shop";', line) },
    { ...LAX, ...settings },
  );
  await mkdir(project.path("node_modules/shop"));
  await project.write({
    "node_modules/shop/package.json": JSON.stringify({ name: "shop", type: "module", ...AS_SOURCE }),
    "node_modules/shop/src/index.ts": PAY,
  });
  return project;
}

inMatrix(
  "tags in TypeScript that an installed package exports are an error, since bundlers do not weave it",
  async (t) => {
    for (const settings of [{}, { noEmit: true }]) {
      const project = await withInstalled(settings);
      const { code, stdout } = await project.tspc();
      t.is(code, 2);
      t.true(stdout.startsWith(AT.replace("pay.ts", "index.ts")), stdout);
      t.regex(stdout, /an installed package exports\. Files in/);
      const checked = await lockweave(project, "check");
      t.is(checked.code, 1);
      t.true(checked.stderr.includes(IN_CHECK), checked.stderr);
    }
  },
);

outsideMatrix(
  "a comment allows an import of an installed package that the bundler weaves by other means",
  async (t) => {
    const line = 'import { pay } from "shop"; // lockweave-allow LW1406: our bundler weaves it';
    t.like(await (await withInstalled({ noEmit: true }, line)).tspc(), { code: 0, stdout: "" });
  },
);

// ---- `paths` to the sources of a library, as in a workspace of Nx ------------------------------------------

/** Creates an application that compiles the sources of a library through `paths` and links the library's package. */
async function byPaths(manifest: object, files: Files = {}): Promise<Project> {
  return await withShop(manifest, files, { rootDir: ".", paths: { shop: ["./packages/shop/src/index.ts"] } });
}

const BUILT = { exports: { types: "./src/index.ts", default: "./dist/index.js" } };
const UNWOVEN = "export async function pay(id) { return id; }\n";
const BY_PATHS = AT.replace(" from `pay.ts`", "");

for (const [what, manifest, files, message] of [
  ["exports its TypeScript", AS_SOURCE, {}, AT],
  [
    "exports JavaScript without the lock",
    BUILT,
    { "dist/index.js": `export * from "./pay.js";\n`, "dist/pay.js": UNWOVEN },
    BY_PATHS,
  ],
  ["exports a bundle without the lock", BUILT, { "dist/index.js": UNWOVEN }, BY_PATHS],
  ["has a `main` without the lock", { main: "lib/index.js" }, { "lib/index.js": UNWOVEN }, BY_PATHS],
] as const) {
  outsideMatrix(
    `an import that \`paths\` resolves to the sources is an error if the package ${what}`,
    async (t) => {
      const ofShop = Object.entries(files).map(([file, text]) => [`packages/shop/${file}`, text]);
      const project = await byPaths(manifest, Object.fromEntries(ofShop) as Files);
      const { code, stdout } = await project.tspc();
      t.is(code, 2);
      t.true(stdout.startsWith(message), stdout);
      t.is(stdout.split("error TS").length, 2, stdout);
      const checked = await lockweave(project, "check");
      t.is(checked.code, 1);
      t.true(checked.stderr.includes(IN_CHECK), checked.stderr);
      await project.write({
        "src/main.ts": MAIN.replace(
          '"shop";',
          '"shop"; // lockweave-allow LW1406: a tool writes the paths anew',
        ),
      });
      t.like(await project.tspc(), { code: 0, stdout: "" });
    },
  );
}

outsideMatrix(
  "an import that `paths` resolves to the sources is not an error if Node loads code with the lock",
  async (t) => {
    const project = await byPaths(BUILT);
    t.like(await project.tspc(), { code: 0, stdout: "" }, "without a build there is nothing to compare");
    await project.write({
      "packages/shop/tsconfig.json": tsconfig(
        { ...LAX, rootDir: "src", outDir: "dist" },
        { include: ["src"] },
      ),
    });
    t.is((await project.tspc("-p", "packages/shop")).code, 0);
    t.like(await project.tspc(), { code: 0, stdout: "" });
  },
);

outsideMatrix(
  "an import that `paths` resolves to the sources is not an error if Node loads this build's output",
  async (t) => {
    const project = await byPaths({ main: "../../out/packages/shop/src/index.js" });
    await project.write({ "out/packages/shop/src/index.js": UNWOVEN });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/src/main.js"), { code: 0, stderr: "" });
  },
);

const SCRIPT =
  "/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id) { return id; }\n";
const OF_SCRIPT = MAIN.replace('"shop"', '"./pay.js"');
const DECLARED = "export declare function pay(id: string): Promise<string>;\n";

for (const [what, files, settings] of [
  ["with its own declarations", { "src/pay.d.ts": DECLARED }, {}],
  ["without types", {}, { noImplicitAny: false }],
] as const) {
  outsideMatrix(
    `tags in JavaScript ${what} that the build imports but does not emit are an error at the import`,
    async (t) => {
      const project = await makeProject(
        { "src/main.ts": OF_SCRIPT, "src/pay.js": SCRIPT, "src/own.ts": OWN, ...files },
        settings,
      );
      const { code, stdout } = await project.tspc();
      t.is(code, 2);
      t.true(stdout.startsWith(AT.replace("pay.ts", "pay.js")), stdout);
      const checked = await lockweave(project, "check");
      t.is(checked.code, 1);
      t.true(checked.stderr.startsWith(IN_CHECK), checked.stderr);
      for (const change of [
        {
          "src/main.ts": OF_SCRIPT.replace(
            'pay.js";',
            'pay.js"; // lockweave-allow LW1406: the hook loads it',
          ),
        },
        { "src/pay.js": "export async function pay(id) { return id; }\n", "src/main.ts": OF_SCRIPT },
      ]) {
        await project.write(change);
        t.like(await project.tspc(), { code: 0, stdout: "" });
      }
    },
  );
}

outsideMatrix("JavaScript that the build emits is woven without an error", async (t) => {
  const project = await makeProject({ "src/main.ts": OF_SCRIPT, "src/pay.js": SCRIPT }, { allowJs: true });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.regex(await project.read("out/pay.js"), /lockweave\.acquire/);
});
