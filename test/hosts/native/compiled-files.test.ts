import { symlink } from "node:fs/promises";
import { lockweave } from "../../cli/command";
import { linkTypeScript7 } from "../../cli/tools";
import { makeProject, type Files, type Project, type Settings } from "../project";
import { inMatrix, outsideMatrix } from "../../support/suites";

// With TypeScript 7, `paths` resolves to the sources of a library for the compiler, but Node loads the package.

const PAY = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id; }
`;
const UNWOVEN = "export async function pay(id) { return id; }\n";
const MAIN = `import { configure, memoryStore } from "lockweave";
import { pay } from "@acme/shop";
configure({ store: memoryStore() });
console.log(await pay("A1"));
`;
const BUILT = { exports: { types: "./src/index.ts", default: "./dist/index.js" } };
const PATHS = { "@acme/*": ["./packages/acme/*/src/index.ts"] };
const SETTINGS: Settings = {
  rootDir: ".",
  paths: PATHS,
  types: ["node"],
  allowImportingTsExtensions: true,
  rewriteRelativeImportExtensions: true,
  plugins: undefined,
};

/** Creates an application that compiles the sources of a library and links the library's package. */
async function withShop(manifest: object, files: Files = {}, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(
    {
      "packages/acme/shop/package.json": JSON.stringify({ name: "@acme/shop", type: "module", ...manifest }),
      "packages/acme/shop/src/index.ts": `export * from "./pay.ts";\n`,
      "packages/acme/shop/src/pay.ts": PAY,
      "src/main.ts": MAIN,
      ...files,
    },
    { ...SETTINGS, ...settings },
  );
  await linkTypeScript7(project);
  await project.write({ "node_modules/@acme/placeholder": "" });
  await symlink(project.path("packages/acme/shop"), project.path("node_modules/@acme/shop"));
  return project;
}

inMatrix(
  "lockweave build reports tags in the TypeScript that a linked package exports, unless a comment allows it",
  async (t) => {
    const project = await withShop({ exports: "./src/index.ts" }, {}, { paths: undefined });
    const { code, stdout, stderr } = await lockweave(project, "build");
    const output = stdout + stderr;
    t.is(code, 2, output);
    const message =
      "LW1406: This imports `pay` with `@redisLock` from `pay.ts`, a TypeScript file that a linked package";
    t.true(output.startsWith(`src/main.ts(2,21): error TS901406: ${message}`), output);
    t.is(output.split("error TS").length, 2, output);
    for (const line of [
      'import { pay } from "@acme/shop"; // lockweave-allow LW1406: lockweave/register loads it',
      'import type { pay } from "@acme/shop";',
    ]) {
      await project.write({ "src/main.ts": `${line}\nexport type Pay = typeof pay;\n` });
      const allowed = await lockweave(project, "build");
      t.is(allowed.code, 0, allowed.stdout + allowed.stderr);
    }
  },
);

for (const [what, manifest, files, from] of [
  ["exports its TypeScript", { exports: "./src/index.ts" }, {}, " from `pay.ts`"],
  ["exports JavaScript without the lock", BUILT, { "packages/acme/shop/dist/index.js": UNWOVEN }, ""],
] as const) {
  outsideMatrix(
    `lockweave build reports an import that \`paths\` resolves to the sources if the package ${what}`,
    async (t) => {
      const project = await withShop(manifest, files);
      const { code, stdout, stderr } = await lockweave(project, "build");
      const output = stdout + stderr;
      t.is(code, 2, output);
      const message = `LW1406: This imports \`pay\` with \`@redisLock\`${from}. \`paths\` points`;
      t.true(output.startsWith(`src/main.ts(2,21): error TS901406: ${message}`), output);
      const checked = await lockweave(project, "check");
      t.is(checked.code, 1);
      t.true(checked.stderr.includes("src/main.ts:2:21: LW1406"), checked.stderr);
      await project.write({
        "src/main.ts": MAIN.replace(
          'shop";',
          'shop"; // lockweave-allow LW1406: tsc-alias rewrites the paths',
        ),
      });
      t.like(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
    },
  );
}

inMatrix(
  "lockweave build accepts `paths` to the sources if Node loads this build's output, or nothing is built",
  async (t) => {
    const own = await withShop(
      { main: "../../../out/packages/acme/shop/src/index.js" },
      { "out/packages/acme/shop/src/index.js": UNWOVEN },
    );
    t.like(await lockweave(own, "build"), { code: 0, stdout: "", stderr: "" });
    t.like(await own.run("out/src/main.js"), { code: 0, stdout: "A1\n", stderr: "" });
    t.like(await lockweave(await withShop(BUILT), "build"), { code: 0, stdout: "", stderr: "" });
  },
);

inMatrix("lockweave build uses the `paths` of an extended tsconfig.json, exact names first", async (t) => {
  const shared = {
    compilerOptions: { paths: { "@acme/*": ["./nowhere/*"], "@acme/shop": ["./packages/acme/shop/src"] } },
  };
  const project = await withShop(
    BUILT,
    { "tsconfig.base.json": JSON.stringify(shared), "packages/acme/shop/dist/index.js": UNWOVEN },
    { paths: undefined, moduleResolution: "bundler", module: "esnext" },
  );
  const own = JSON.parse(await project.read("tsconfig.json")) as object;
  await project.write({ "tsconfig.json": JSON.stringify({ extends: "./tsconfig.base.json", ...own }) });
  const { code, stdout, stderr } = await lockweave(project, "build");
  t.is(code, 2);
  t.regex(stdout + stderr, /LW1406: This imports `pay` with `@redisLock`\. `paths` points/);
});
