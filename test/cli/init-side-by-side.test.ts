import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { Project } from "../../transformer/cli/init/project";
import { layOut, RECOMMENDED, type Layout } from "../hosts/native/layouts";
import { makeProject, tsconfig, type Files } from "../hosts/project";
import { lockweave } from "./command";

// `lockweave init` in projects with both TypeScript 6 and 7.

const SIX_AND_SEVEN: Layout = { typescript: "typescript@6", "typescript-7": "typescript@7" };

interface Drafted {
  readonly hosts: readonly string[];
  readonly scripts: Files;
  readonly installs: readonly string[];
  readonly byHand: readonly string[];
}

/** @param tsc the package that `.bin/tsc` runs */
async function drafted(scripts: Files, layout: Layout, tsc?: string, others: Files = {}): Promise<Drafted> {
  const project = await makeProject({ "package.json": JSON.stringify({ scripts }), ...others });
  await layOut(project, layout, tsc);
  const { draft, found } = planFor(new Project(project.dir));
  const after = draft.text("package.json") ?? "{}";
  return {
    hosts: found.map(([{ name }, evidence]) => `${name}: ${evidence}`),
    scripts: (JSON.parse(after) as { readonly scripts: Files }).scripts,
    installs: [...draft.devDependencies],
    byHand: draft.byHand.flatMap(({ lines }) => lines),
  };
}

test("init proposes `lockweave build` if `typescript` is @typescript/typescript6", async (t) => {
  const scripts = { build: "tsc -p .", lint: "tsc --noEmit", old: "tsc6 -p tsconfig.old.json" };
  t.deepEqual(await drafted(scripts, RECOMMENDED, "@typescript/native"), {
    hosts: ["TypeScript 7: `tsc -p .` in a script, and ts-patch accepts no other package as `typescript`"],
    scripts: {
      build: "lockweave build -p .",
      lint: "tsc --noEmit",
      old: "lockweave build --typescript typescript -p tsconfig.old.json",
    },
    installs: [],
    byHand: [],
  });
});

test("init never replaces the tsc of TypeScript 7 with tspc", async (t) => {
  const build = { build: "tsc" };
  const { hosts, scripts, installs } = await drafted(build, SIX_AND_SEVEN, "typescript-7");
  t.deepEqual(hosts, ["TypeScript 7: `tsc` in a script, and `tsc` is TypeScript 7.0.2"]);
  t.deepEqual([scripts, installs], [{ build: "lockweave build --typescript typescript-7" }, []]);
  const unknown = await drafted(build, SIX_AND_SEVEN);
  t.deepEqual(unknown.hosts, ["TypeScript 7: `tsc` in a script, and `typescript-7` may bring its `tsc`"]);
  t.deepEqual(unknown.scripts, { build: "lockweave build --typescript typescript-7" });
});

test("init still proposes tspc if tsc runs TypeScript 6", async (t) => {
  const { hosts, scripts, installs } = await drafted({ build: "tsc" }, SIX_AND_SEVEN, "typescript");
  t.deepEqual(hosts, ["tspc: `tsc` in a script"]);
  t.deepEqual([scripts, installs], [{ build: "tspc" }, []]);
});

test("init tells NestJS and ts-node users to install typescript@6 if ts-patch cannot patch TypeScript", async (t) => {
  for (const [scripts, others] of [
    [{ build: "nest build" }, { "nest-cli.json": "{}" }],
    [{ start: "ts-node src/main.ts" }, {}],
  ] as const) {
    const { byHand, scripts: after, installs } = await drafted(scripts, RECOMMENDED, undefined, others);
    t.deepEqual(byHand, ["npm install --save-dev typescript@6"]);
    t.deepEqual([after, installs], [scripts, []]);
  }
});

test("init shows the first lock with the TypeScript that tsc runs", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({ type: "module", scripts: { build: "tsc" } }),
    "tsconfig.json": tsconfig({ plugins: undefined, types: ["node"] }),
    "node_modules/ioredis/package.json": "{}",
  });
  await layOut(project, RECOMMENDED, "@typescript/native");
  const { code, stdout } = await lockweave(project, "init", "--yes");
  t.is(code, 0, stdout);
  t.true(stdout.includes("TypeScript 6.0.2 and 7.0.2 (`@typescript/native`), ES modules, npm"), stdout);
  t.true(stdout.includes("Your first lock, woven by TypeScript 7, is first-lock.ts:"), stdout);
});
