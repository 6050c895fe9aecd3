import { rm } from "node:fs/promises";
import { isTestFile } from "../../transformer/analyze/test-files";
import { makeProject, tsconfig, type Files, type Project, type Settings } from "../hosts/project";
import { lockweave } from "./command";
import { linkTypeScript7 } from "./tools";
import { inMatrixSerially, outsideMatrix, outsideMatrixSerially } from "../support/suites";

// Projects whose tsconfig.json includes the tests, and whose build has its own tsconfig, like the starter of NestJS.

const tagged = (name: string): string => `/** @redisLock businessFlag=${name} keyName=id */
export async function ${name}(id: string): Promise<string> {
  return id;
}
`;
const TESTS_TOO = { include: ["src", "test"] };
const NO_TESTS = ["node_modules", "test", "dist", "**/*spec.ts"];

function buildConfig(settings: Settings = {}, others: object = {}): string {
  return JSON.stringify({
    extends: "./tsconfig.json",
    compilerOptions: { rootDir: "src", outDir: "dist", noEmit: false, ...settings },
    include: ["src"],
    exclude: NO_TESTS,
    ...others,
  });
}

const ELSEWHERE = tsconfig({ rootDir: ".", outDir: "dist" }, TESTS_TOO);
const NO_EMIT = tsconfig({ rootDir: ".", noEmit: true }, TESTS_TOO);
const FILES = {
  "tsconfig.json": ELSEWHERE,
  "tsconfig.build.json": buildConfig(),
  "src/pay.ts": tagged("pay"),
};

/** Builds the projects with `tspc`, one after the other. */
async function built(files: Files, ...configs: readonly string[]): Promise<Project> {
  const project = await makeProject(files);
  for (const config of configs) {
    const { code, stdout } = await project.tspc("-p", config);
    if (code !== 0) throw new Error(stdout);
  }
  return project;
}

async function check(project: Project, ...args: string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await lockweave(project, "check", ...args);
  return { code, said: stdout + stderr };
}

// ---- the project that wrote the output is found -----------------------------------------------------------

for (const [what, config] of [
  ["would write elsewhere", ELSEWHERE],
  ["has noEmit", NO_EMIT],
] as const) {
  outsideMatrixSerially(
    `check finds the project that wrote the output if tsconfig.json ${what}`,
    async (t) => {
      const project = await built({ ...FILES, "tsconfig.json": config }, "tsconfig.build.json");
      const said =
        "The lock of the only tag is in the output of `tsconfig.build.json`. The types in tags were checked.\n";
      t.deepEqual(await check(project), { code: 0, said });
      t.deepEqual(await check(project, "-p", "."), { code: 0, said });
    },
  );

  outsideMatrixSerially(
    `check reports a tag in a test that the build leaves out if tsconfig.json ${what}`,
    async (t) => {
      const files = { ...FILES, "tsconfig.json": config, "test/app.e2e-spec.ts": tagged("probe") };
      const project = await built(files, "tsconfig.build.json");
      t.deepEqual(await check(project), {
        code: 0,
        said: "The lock of the only tag is in the output of `tsconfig.build.json`. One tag in a test is not built. `--json` lists it. The types in tags were checked.\n",
      });
      const { stdout } = await lockweave(project, "check", "--json");
      const { tags, builders, leftOut } = JSON.parse(stdout) as Record<string, unknown>;
      t.deepEqual([tags, builders], [1, ["tsconfig.build.json"]]);
      t.deepEqual(leftOut, [{ file: "test/app.e2e-spec.ts", line: 1, column: 5 }]);
    },
  );
}

inMatrixSerially(
  "check accepts a spec next to the sources if both projects write to the same files",
  async (t) => {
    const files = {
      ...FILES,
      "tsconfig.build.json": buildConfig({ rootDir: "." }),
      "src/pay.spec.ts": tagged("probe"),
    };
    const project = await built(files, "tsconfig.build.json");
    const { code, said } = await check(project);
    t.is(code, 0, said);
    t.true(said.includes("One tag in a test is not built"), said);
  },
);

outsideMatrixSerially("check still reports an invalid tag in a test that the build leaves out", async (t) => {
  const wrong = tagged("probe").replace("keyName=id", "keyName=id.length.size");
  const project = await built({ ...FILES, "test/app.e2e-spec.ts": wrong }, "tsconfig.build.json");
  const { code, said } = await check(project);
  t.is(code, 1, said);
  t.regex(said, /^test\/app\.e2e-spec\.ts:1:\d+: TS2339: Property 'size' does not exist on type 'number'\./m);
});

inMatrixSerially("check finds the project that a script of package.json names", async (t) => {
  const { "tsconfig.build.json": _, ...files } = FILES;
  const project = await built(
    {
      ...files,
      "config/release.json": buildConfig(
        { rootDir: "../src", outDir: "../dist" },
        {
          extends: "../tsconfig.json",
          include: ["../src"],
        },
      ),
    },
    "config/release.json",
  );
  for (const build of [
    "tspc -p config/release.json",
    "tspc --project=config/release.json --outDir dist && npm test",
    'tspc --project "config/release.json"',
    "tspc -p 'config/release.json'",
    String.raw`tspc -p config\release.json`,
    "tspc -b --force gone.json config/release.json",
  ]) {
    await project.write({ "package.json": JSON.stringify({ type: "module", scripts: { build } }) });
    const { code, said } = await check(project);
    t.is(code, 0, said);
    t.true(said.includes("in the output of `config/release.json`."), said);
  }
});

inMatrixSerially("check finds the project that TypeScript 7 has built", async (t) => {
  const project = await makeProject({ ...FILES, "test/app.spec.ts": tagged("probe") });
  await linkTypeScript7(project);
  t.like(await lockweave(project, "build", "-p", "tsconfig.build.json"), { code: 0, stderr: "" });
  const { code, said } = await check(project);
  t.is(code, 0, said);
  t.true(
    said.startsWith("The lock of the only tag is in the output of `tsconfig.build.json`. One tag in a test"),
    said,
  );
});

inMatrixSerially("check at the root of a monorepo finds the projects of its packages", async (t) => {
  const ofPackage = tsconfig({ noEmit: false, rootDir: "src", outDir: "dist" });
  const project = await built(
    {
      "tsconfig.json": tsconfig({ rootDir: ".", noEmit: true }, { include: ["packages/*/src"] }),
      "packages/a/tsconfig.json": ofPackage,
      "packages/a/src/a.ts": tagged("a"),
      "packages/b/tsconfig.json": ofPackage,
      "packages/b/src/b.ts": tagged("b"),
    },
    "packages/a",
    "packages/b",
  );
  const all = await check(project);
  t.is(all.code, 0, all.said);
  t.true(all.said.startsWith("The locks of all 2 tags are in the output of"), all.said);
  await rm(project.path("packages/b/dist"), { recursive: true });
  const { code, said } = await check(project);
  t.is(code, 1, said);
  t.true(said.startsWith("packages/b/src/b.ts:1:5: Cannot verify the lock of `b`: none of the built"), said);
});

inMatrixSerially("check accepts a solution if only its project without the tests was built", async (t) => {
  const composite = { composite: true, declaration: true };
  const project = await built(
    {
      "src/pay.ts": tagged("pay"),
      "src/pay.spec.ts": `import "./pay.js";\n${tagged("probe")}`,
      "tsconfig.json": JSON.stringify({
        files: [],
        references: [{ path: "./tsconfig.app.json" }, { path: "./tsconfig.spec.json" }],
      }),
      "tsconfig.app.json": tsconfig(
        { ...composite, outDir: "dist" },
        { include: ["src"], exclude: NO_TESTS },
      ),
      "tsconfig.spec.json": tsconfig({ ...composite, outDir: "out-spec" }),
    },
    "tsconfig.app.json",
  );
  const { code, said } = await check(project);
  t.is(code, 0, said);
  t.true(said.includes("One tag in a test is not built"), said);
});

// ---- what is missing stays an error -----------------------------------------------------------------------

outsideMatrixSerially("check reports a build of another tsconfig that was not woven", async (t) => {
  const project = await makeProject({ ...FILES, "test/app.spec.ts": tagged("probe") });
  await project.tsc("-p", "tsconfig.build.json");
  const { code, said } = await check(project);
  t.is(code, 1);
  t.true(
    said.startsWith("src/pay.ts:1:5: Cannot verify the lock of `pay`: `dist/pay.js` does not lock it."),
    said,
  );
  t.true(
    said.endsWith(
      "Compared with the output of `tsconfig.build.json`. If another tsconfig builds this, name it with `-p`.\n",
    ),
    said,
  );
});

inMatrixSerially(
  "check names the tsconfig that replaces the plugins of the one that it extends",
  async (t) => {
    const project = await built(
      { ...FILES, "tsconfig.build.json": buildConfig({ plugins: [] }) },
      "tsconfig.build.json",
    );
    const { code, said } = await check(project);
    t.is(code, 1, said);
    t.regex(said, /\n-> Add \{ .*"transformProgram": true \} to `plugins` in `tsconfig\.build\.json`\.\n/);
  },
);

inMatrixSerially("check reports a file that is missing in the build of another tsconfig", async (t) => {
  // The second file has the path of a test, but the build compiles it. The project of the worker does not change that.
  for (const file of ["src/refund.ts", "src/test/refund.ts"]) {
    const files = {
      ...FILES,
      [file]: tagged("refund"),
      "worker/tick.ts": tagged("tick"),
      "tsconfig.json": tsconfig({ rootDir: ".", noEmit: true }, { include: ["src", "test", "worker"] }),
      "tsconfig.build.json": buildConfig({}, { exclude: [] }),
      "tsconfig.worker.json": buildConfig(
        { rootDir: "worker", outDir: "dist-worker" },
        { include: ["worker"] },
      ),
    };
    const project = await built(files, "tsconfig.build.json", "tsconfig.worker.json");
    const all = await check(project);
    t.is(all.code, 0, all.said);
    const output = file.replace("src", "dist").replace(".ts", ".js");
    await rm(project.path(output));
    const { code, said } = await check(project);
    t.is(code, 1, said);
    t.true(
      said.startsWith(`${file}:1:5: Cannot verify the lock of \`refund\`: \`${output}\` does not exist.`),
      said,
    );
  }
});

inMatrixSerially(
  "check reports a tagged file that no project with output compiles, unless it is a test",
  async (t) => {
    const files = {
      ...FILES,
      "tsconfig.json": tsconfig({ rootDir: ".", noEmit: true }, { include: ["src", "test", "scripts"] }),
      "scripts/nightly.ts": tagged("nightly"),
      "test/pay.ts": tagged("probe"),
    };
    const project = await built(files, "tsconfig.build.json");
    const { code, said } = await check(project);
    t.is(code, 1);
    t.deepEqual(said.trimEnd().split("\n"), [
      "scripts/nightly.ts:1:5: Cannot verify the lock of `nightly`: none of the built projects compiles this file.",
      "-> Build the project that compiles these files, or name it: `npx lockweave check -p <tsconfig>`.",
      "-> Compared with the output of `tsconfig.build.json`. If another tsconfig builds this, name it with `-p`.",
    ]);
  },
);

inMatrixSerially(
  "check reports unwoven output where tsconfig.json would write, unless -p names the build",
  async (t) => {
    const project = await built(FILES, "tsconfig.build.json");
    await project.write({ "dist/src/pay.js": `export async function pay(id) { return id; }\n` });
    const { code, said } = await check(project);
    t.is(code, 1);
    t.true(said.includes("`dist/src/pay.js` does not lock it"), said);
    t.true(said.includes("Compared with the output of `tsconfig.json`, `tsconfig.build.json`."), said);
    t.like(await check(project, "-p", "tsconfig.build.json"), { code: 0 });
  },
);

inMatrixSerially("check requires the locks in the output of each project that has written one", async (t) => {
  const files = {
    ...FILES,
    "tsconfig.json": NO_EMIT,
    "tsconfig.build.json": buildConfig({ outDir: "dist/esm" }),
    "tsconfig-cjs.json": buildConfig({ outDir: "dist/cjs" }),
  };
  const project = await built(files, "tsconfig.build.json", "tsconfig-cjs.json");
  const both = await check(project);
  t.is(both.code, 0, both.said);
  t.true(both.said.includes("in the output of `tsconfig-cjs.json`, `tsconfig.build.json`."), both.said);
  await project.tsc("-p", "tsconfig-cjs.json");
  const { code, said } = await check(project);
  t.is(code, 1);
  t.true(said.includes("`dist/cjs/pay.js` does not lock it"), said);
});

inMatrixSerially(
  "check reports another build without the locks even if the build of tsconfig.json has them",
  async (t) => {
    const files = {
      ...FILES,
      "tsconfig.json": tsconfig({ rootDir: "src", outDir: "esm" }),
      "tsconfig.cjs.json": buildConfig({ outDir: "cjs" }),
    };
    const project = await built(files, "tsconfig.json", "tsconfig.cjs.json");
    const both = await check(project);
    t.is(both.code, 0, both.said);
    t.true(both.said.startsWith("The lock of the only tag is in the output. "), both.said);
    await project.tsc("-p", "tsconfig.cjs.json");
    const { code, said } = await check(project);
    t.is(code, 1, said);
    t.true(said.includes("`cjs/pay.js` does not lock it"), said);
    t.true(said.includes("the output of `tsconfig.json`, `tsconfig.cjs.json`."), said);
    t.like(await check(project, "-p", "tsconfig.json"), { code: 0 });
  },
);

inMatrixSerially("check accepts the last build if several projects write the same files", async (t) => {
  const optional = `/** @redisLock businessFlag=pay keyName="order?.id ?? 0" */
export async function pay(order?: { id: string }): Promise<void> {
  void order;
}
`;
  const files = {
    "src/pay.ts": optional,
    "tsconfig.json": NO_EMIT,
    "tsconfig.build.json": buildConfig({ target: "es2018" }),
    "tsconfig.dev.json": buildConfig({ target: "es2022" }),
  };
  const project = await built(files, "tsconfig.build.json");
  for (const config of ["tsconfig.build.json", "tsconfig.dev.json"]) {
    await project.tspc("-p", config);
    const { code, said } = await check(project);
    t.is(code, 0, said);
  }
  await project.write({ "src/pay.ts": optional.replace("=pay", "=payOrder") });
  const stale = await check(project);
  t.is(stale.code, 1, stale.said);
  t.true(stale.said.includes("its lock in `dist/pay.js` differs"), stale.said);
  await project.tsc("-p", "tsconfig.build.json");
  const { code, said } = await check(project);
  t.is(code, 1, said);
  t.true(said.includes("`dist/pay.js` does not lock it"), said);
});

// ---- messages that name a tsconfig ------------------------------------------------------------------------

outsideMatrixSerially("check names the tsconfig that would write code if nothing is built", async (t) => {
  const project = await makeProject({ ...FILES, "tsconfig.json": NO_EMIT });
  const silent = await check(project);
  t.is(silent.code, 2);
  t.true(
    silent.said.includes("`tsconfig.build.json` writes code, but its output does not exist yet."),
    silent.said,
  );
  await project.write({ "tsconfig.json": ELSEWHERE });
  const { code, said } = await check(project);
  t.is(code, 1);
  t.true(said.includes("-> The output of `tsconfig.build.json` does not exist either."), said);
});

outsideMatrixSerially(
  "check uses only the tsconfig that -p names, and suggests the one that wrote the output",
  async (t) => {
    const project = await built(FILES, "tsconfig.build.json");
    const { code, said } = await check(project, "-p", "tsconfig.json");
    t.is(code, 1);
    t.true(
      said.endsWith("`tsconfig.build.json` has written output. If it is your build, name it with `-p`.\n"),
      said,
    );
    await project.write({ "tsconfig.json": NO_EMIT });
    const silent = await check(project, "-p", "tsconfig.json");
    t.is(silent.code, 2);
    t.true(
      silent.said.includes("`tsconfig.build.json` has written code. Fix: use `-p` to name the tsconfig"),
      silent.said,
    );
  },
);

inMatrixSerially("check of a bundle says how to leave out tags in tests", async (t) => {
  const project = await built({ ...FILES, "src/pay.spec.ts": tagged("probe") }, "tsconfig.build.json");
  const { code, said } = await check(project, "--output", "dist");
  t.is(code, 1);
  t.true(said.includes("-> To leave tests out, name a tsconfig without them with `-p`."), said);
  t.like(await check(project, "-p", "tsconfig.build.json", "--output", "dist"), { code: 0 });
});

outsideMatrix("a file is a test by its name or by a directory below the tsconfig", (t) => {
  for (const [file, isTest] of [
    ["/test/app/src/pay.ts", false],
    ["/test/app/src/pay.spec.ts", true],
    ["/test/app/src/pay.e2e-spec.mts", true],
    ["/test/app/src/pay_test.tsx", true],
    ["/test/app/src/latest.ts", false],
    ["/test/app/src/testing/pay.ts", false],
    ["/test/app/src/__tests__/pay.ts", true],
    ["/test/app/e2e/deep/pay.ts", true],
  ] as const) {
    t.is(isTestFile(file, "/test/app/tsconfig.json"), isTest, file);
  }
});
