import { mkdir } from "node:fs/promises";
import { relative } from "node:path";
import test from "ava";
import { pathInPackage } from "../../transformer/hosts/path-in-package";
import { makeProject } from "./project";

test("pathInPackage() returns the package name and the path in it, independent of the directory's name", async (t) => {
  const project = await makeProject({
    "package.json": '{ "name": "@acme/app" }',
    "node_modules/other/package.json": '{ "name": "other" }',
    "src/legacy/package.json": '{ "type": "commonjs" }',
    "src/wrong/package.json": "{",
    "src/empty/package.json": '{ "name": "" }',
    "src/marked/package.json": '\uFEFF{ "name": "marked" }',
  });
  for (const [file, expected] of [
    ["main.ts", "@acme/app/main.ts"],
    ["src/a/main.ts", "@acme/app/src/a/main.ts"],
    ["src/legacy/main.ts", "@acme/app/src/legacy/main.ts"],
    ["src/wrong/main.ts", "@acme/app/src/wrong/main.ts"],
    ["src/empty/main.ts", "@acme/app/src/empty/main.ts"],
    ["src/marked/main.ts", "marked/main.ts"],
    ["node_modules/other/src/main.ts", "other/src/main.ts"],
  ] as const) {
    t.is(pathInPackage(project.path(file)), expected);
    t.is(pathInPackage(relative(".", project.path(file))), expected);
  }
});

test("pathInPackage() starts at the nearest package.json without a name, and returns nothing without one", async (t) => {
  const project = await makeProject({ "package.json": "{}", "inner/package.json": '{ "name": 1 }' });
  await mkdir(project.path("inner/src"));
  t.is(pathInPackage(project.path("src/main.ts")), "src/main.ts");
  t.is(pathInPackage(project.path("inner/src/main.ts")), "src/main.ts");
  t.is(pathInPackage("/nowhere/src/main.ts"), undefined);
});

test("pathInPackage() ignores a package.json above the repository", async (t) => {
  const project = await makeProject({
    "package.json": '{ "name": "home-of-alice" }',
    "work/app/package.json": '{ "private": true }',
    "work/app/.git/HEAD": "",
    "work/tool/.git": "gitdir: ../tool.git",
  });
  t.is(pathInPackage(project.path("work/app/src/main.ts")), "src/main.ts");
  t.is(pathInPackage(project.path("work/tool/src/main.ts")), undefined);
});
