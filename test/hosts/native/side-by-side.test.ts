import type { ExecutionContext } from "ava";
import { compilingTypeScript } from "../../../transformer/hosts/native/compiler";
import { typeScriptOfTsc } from "../../../transformer/hosts/native/installed";
import { lockweave } from "../../cli/command";
import { inMatrixSerially, outsideMatrixSerially } from "../../support/suites";
import type { SetName } from "../installed";
import { makeProject, PLUGIN, type Files, type Project } from "../project";
import { installLayout, layOut, RECOMMENDED, type Layout } from "./layouts";

// TypeScript 6 and 7 installed together, under any names.

const LAYOUTS: Readonly<Record<string, { readonly layout: Layout; readonly set: SetName }>> = {
  "typescript is @typescript/typescript6, and @typescript/native is 7": {
    layout: RECOMMENDED,
    set: "typescript-native",
  },
  "typescript is @typescript/typescript6, and typescript-7 is 7": {
    layout: { typescript: "@typescript/typescript6", "typescript-7": "typescript@7" },
    set: "typescript-6-and-7",
  },
  "typescript is 7, and typescript6 is @typescript/typescript6": {
    layout: { typescript: "typescript@7", typescript6: "@typescript/typescript6" },
    set: "typescript-7-and-typescript6",
  },
  "typescript is 7, and typescript-legacy is 6": {
    layout: { typescript: "typescript@7", "typescript-legacy": "typescript@6" },
    set: "typescript-7-and-legacy",
  },
};

// `refund` acquires the key that it holds, which `check` finds by following the calls. TypeScript 7 cannot tell.
const FILES = {
  "src/pay.ts": `/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return orderNo;
}
/** @redisLock businessFlag=pay keyName=orderNo */
export async function refund(orderNo: string): Promise<string> {
  return pay(orderNo);
}
`,
};

async function isBuiltAndChecked(t: ExecutionContext, project: Project): Promise<void> {
  t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
  t.true((await project.read("out/pay.js")).includes("lockweave.acquire(lock)"));
  const { code, stdout, stderr } = await lockweave(project, "check");
  t.deepEqual([code, stdout], [1, ""]);
  t.regex(stderr, /^src\/pay\.ts:7:\d+: LW\d{4}: .*\n$/);
}

outsideMatrixSerially("build and check find TypeScript under other names", async (t) => {
  const project = await makeProject(FILES);
  await layOut(project, RECOMMENDED);
  await isBuiltAndChecked(t, project);
});

for (const [what, { layout, set }] of Object.entries(LAYOUTS)) {
  inMatrixSerially(`build, check, and diff work in a layout that npm installs: ${what}`, async (t) => {
    const project = await makeProject(FILES);
    await installLayout(project, layout, set);
    await isBuiltAndChecked(t, project);
    const shown = await lockweave(project, "diff", "pay");
    t.is(shown.code, 0, shown.stderr);
  });
}

inMatrixSerially("a project with only @typescript/typescript6 can be built and checked", async (t) => {
  const project = await makeProject({
    "src/pay.ts": FILES["src/pay.ts"].replace("pay(orderNo);", "orderNo;"),
  });
  await layOut(project, { typescript: "@typescript/typescript6" });
  const missing = await lockweave(project, "check");
  t.is(missing.code, 1);
  t.true(missing.stderr.includes("-> Build with `lockweave build` first"), missing.stderr);
  t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
  t.deepEqual(await lockweave(project, "check"), {
    code: 0,
    stdout: "The locks of all 2 tags are in the output. The types in tags were checked.\n",
    stderr: "",
  });
});

outsideMatrixSerially(
  "a TypeScript that is missing, too old, or without an API is named with the fix",
  async (t) => {
    const project = await makeProject({
      ...FILES,
      "node_modules/old/package.json": `{ "name": "typescript", "version": "5.8.3", "bin": { "tsc": "tsc.js" } }`,
    });
    await layOut(project, { typescript: "typescript@7" });
    await project.write({
      "package.json": JSON.stringify({ dependencies: { typescript: "7", old: "npm:typescript@5.8" } }),
    });
    const found = "The project has `typescript` 7.0.2 (no JavaScript API), `old` 5.8.3 (too old).";
    for (const [name, is] of [
      ["gone", "is not installed"],
      ["old", "is TypeScript 5.8.3"],
      ["./node_modules/old", "is TypeScript 5.8.3"],
      ["./src", "is not installed"],
    ] as const) {
      const { code, stderr } = await lockweave(project, "build", "--typescript", name);
      t.is(code, 2);
      t.true(
        stderr.startsWith(
          `lockweave: \`${name}\` ${is}. Lockweave needs TypeScript 5.9 or later. ${found} Fix: `,
        ),
        stderr,
      );
    }
    const shown = await lockweave(project, "diff", "--typescript", "typescript");
    t.is(shown.code, 2);
    t.true(shown.stderr.includes("npm install --save-dev typescript6@npm:typescript@6"), shown.stderr);
  },
);

outsideMatrixSerially("a path or a package that is not TypeScript is not run", async (t) => {
  const sayHello = `console.log("it was run");`;
  const project = await makeProject({
    ...FILES,
    "package.json": `{ "name": "app", "version": "6.1.0", "main": "main.cjs" }`,
    "main.cjs": sayHello,
    "node_modules/tool/package.json": `{ "name": "tool", "version": "7.0.0", "main": "tool.cjs" }`,
    "node_modules/tool/tool.cjs": sayHello,
  });
  // The first two resolve to the package of the application.
  for (const name of ["./tools/gone", "./main.cjs", "tool", "./node_modules/tool"]) {
    for (const command of ["check", "build"]) {
      const { code, stdout, stderr } = await lockweave(project, command, "--typescript", name);
      t.deepEqual([code, stdout], [2, ""]);
      t.true(stderr.startsWith(`lockweave: \`${name}\` is not installed. `), stderr);
    }
  }
});

// ---- choosing among several --------------------------------------------------------------------------------

/** Returns the files of a package that prints that it was run. */
function standIn(name: string, version: string, bin = "tsc"): Files {
  const dir = `node_modules/${name}`;
  return {
    [`${dir}/package.json`]: JSON.stringify({ name: "typescript", version, bin: { [bin]: "./run.js" } }),
    [`${dir}/run.js`]: `console.log("error TS1: ${name} was run"); process.exitCode = 1;`,
  };
}

outsideMatrixSerially("--typescript and tsconfig.json name the TypeScript that compiles", async (t) => {
  const project = await makeProject({
    "src/a.ts": "",
    "src/deep/b.ts": "",
    ...standIn("one", "7.0.0"),
    ...standIn("@two/b", "6.0.0"),
  });
  const ranBy = async (...args: string[]): Promise<string> =>
    (await lockweave(project, "build", ...args)).stdout;
  for (const name of ["one", "@two/b"]) {
    t.is(await ranBy("--typescript", name), `error TS1: ${name} was run\n`);
    t.is(await ranBy("--typescript", `./node_modules/${name}/run.js`), `error TS1: ${name} was run\n`);
  }
  await project.write({
    "config/base.json": JSON.stringify({
      compilerOptions: { plugins: [{ ...PLUGIN, typescript: "../node_modules/@two/b" }] },
    }),
    "tsconfig.json": JSON.stringify({ extends: "./config/base.json" }),
  });
  t.is(await ranBy(), "error TS1: @two/b was run\n");
  t.is(await ranBy("--typescript", "one"), "error TS1: one was run\n");
});

outsideMatrixSerially(
  "the package `typescript` compiles unless another dependency provides tsc",
  async (t) => {
    // A catalog of pnpm does not say what a name stands for.
    for (const [layout, asked, name] of [
      [{ typescript: "typescript@6" }, { seven: "npm:typescript@7" }, "typescript"],
      [{ typescript: "@typescript/typescript6" }, { seven: "npm:typescript@7" }, "seven"],
      [
        { typescript: "@typescript/typescript6" },
        { "ts-nightly": "catalog:", "ts-node": "10" },
        "ts-nightly",
      ],
      [{ typescript: "@typescript/typescript6" }, {}, "typescript"],
      [{}, { six: "npm:typescript@6", seven: "npm:typescript@7" }, "seven"],
    ] as const) {
      const project = await makeProject({
        ...standIn("six", "6.0.0"),
        ...standIn("seven", "7.0.0"),
        ...standIn("ts-nightly", "7.1.0-dev", "tsgo"),
        "packages/app/package.json": "{}",
      });
      await layOut(project, layout);
      await project.write({ "package.json": JSON.stringify({ devDependencies: asked }) });
      t.is(compilingTypeScript(project.path("packages/app/tsconfig.json"))?.name, name);
    }
  },
);

outsideMatrixSerially(
  "finds the TypeScript of tsc through a link, and through the scripts of npm on Windows and pnpm",
  async (t) => {
    const project = await makeProject(standIn("seven", "7.0.0"));
    const ofTsc = (): string | undefined =>
      typeScriptOfTsc(project.path("packages/app/tsconfig.json"))?.version;
    t.is(ofTsc(), undefined);
    const script = `#!/bin/sh
basedir=$(dirname "$(echo "$0" | sed -e 's,\\\\,/,g')")
if [ -x "$basedir/node" ]; then
  exec "$basedir/node"  "$basedir/../seven/run.js" "$@"
else
  exec node  "$basedir/../seven/run.js" "$@"
fi
`;
    await project.write({ "node_modules/.bin/tsc": script });
    t.is(ofTsc(), "7.0.0");
    await project.write({ "node_modules/.bin/tsc": "#!/bin/sh\n" });
    t.is(ofTsc(), undefined);
    const linked = await makeProject({});
    await layOut(linked, RECOMMENDED, "@typescript/native");
    t.is(typeScriptOfTsc(linked.path("tsconfig.json"))?.major, 7);
  },
);
