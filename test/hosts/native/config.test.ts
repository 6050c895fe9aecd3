import { symlink } from "node:fs/promises";
import test from "ava";
import { configFiles, projectsInOrder } from "../../../transformer/hosts/native/config";
import { parser } from "../../../transformer/parser/parser";
import { makeProject, type Project } from "../project";

const ts = parser();

/** Returns the configuration files of a project, by precedence. */
function extendedBy(project: Project, config = "tsconfig.json"): string[] {
  return configFiles(ts, project.path(config)).map(({ path }) => path.slice(project.dir.length + 1));
}

test("a tsconfig.json extends others by path, with or without the extension, and by package", async (t) => {
  const project = await makeProject({
    "config/base.json": "{}",
    "node_modules/shared/package.json": JSON.stringify({ main: "index.js" }),
    "node_modules/shared/index.js": "",
    "node_modules/shared/tsconfig.json": "{}",
    "node_modules/shared/strict.json": "{}",
    "node_modules/mapped/package.json": JSON.stringify({ exports: { "./*.json": "./*.json" } }),
    "node_modules/mapped/base.json": "{}",
    "node_modules/alone/package.json": JSON.stringify({ exports: "./alone.json" }),
    "node_modules/alone/alone.json": "{}",
  });
  for (const [name, path] of [
    ["./config/base.json", "config/base.json"],
    ["./config/base", "config/base.json"],
    [project.path("config/base"), "config/base.json"],
    ["shared", "node_modules/shared/tsconfig.json"],
    ["shared/strict", "node_modules/shared/strict.json"],
    ["shared/strict.json", "node_modules/shared/strict.json"],
    ["mapped/base", "node_modules/mapped/base.json"],
    ["alone", "node_modules/alone/alone.json"],
  ] as const) {
    await project.write({ "tsconfig.json": JSON.stringify({ extends: name }) });
    t.deepEqual(extendedBy(project), ["tsconfig.json", path], name);
  }
  for (const name of ["./config/missing", "missing", "shared/index.js"]) {
    await project.write({ "tsconfig.json": JSON.stringify({ extends: name }) });
    t.deepEqual(extendedBy(project), ["tsconfig.json"], name);
  }
});

test("a linked tsconfig.json keeps the path of its link, where its relative paths start", async (t) => {
  const project = await makeProject({
    "tsconfig.json": '{ "extends": "./base" }',
    "elsewhere/base.json": "{}",
  });
  await symlink("elsewhere/base.json", project.path("base.json"));
  t.deepEqual(extendedBy(project), ["tsconfig.json", "base.json"]);
});

test("the last of several extended files takes precedence, and each overrides those that it extends", async (t) => {
  const project = await makeProject({
    "tsconfig.json": `{
      // Comments and commas at the end are allowed.
      "extends": ["./a.json", "./b.json",], "compilerOptions": { "strict": true, },
    }`,
    "a.json": '{ "extends": "./c.json", "compilerOptions": { "target": "es2020" } }',
    "b.json": '{ "extends": "./tsconfig.json" }',
    "c.json": "no JSON",
  });
  t.deepEqual(extendedBy(project), ["tsconfig.json", "b.json", "a.json", "c.json"]);
  const settings = configFiles(ts, project.path("tsconfig.json")).map((one) => one.settings);
  t.deepEqual(settings, [{ strict: true }, {}, { target: "es2020" }, {}]);
});

test("projects come after their references, once each, and projects without files are left out", async (t) => {
  const references = (...paths: readonly string[]): object => ({
    references: paths.map((path) => ({ path })),
  });
  const project = await makeProject({
    "tsconfig.json": JSON.stringify({
      files: [],
      ...references("./a", "./b/tsconfig.other.json", "./missing"),
    }),
    "a/tsconfig.json": JSON.stringify(references("../b/tsconfig.other.json", "../c")),
    "b/tsconfig.other.json": JSON.stringify({ files: ["b.ts"], ...references("../c") }),
    "c/tsconfig.json": JSON.stringify({ files: [], ...references("../a") }),
    "d/tsconfig.json": JSON.stringify({ files: [], references: "none" }),
  });
  const inOrder = (config: string): string[] =>
    projectsInOrder(ts, project.path(config)).map((path) => path.slice(project.dir.length + 1));
  t.deepEqual(inOrder("tsconfig.json"), ["b/tsconfig.other.json", "a/tsconfig.json"]);
  t.deepEqual(inOrder("d/tsconfig.json"), ["d/tsconfig.json"]);
});
