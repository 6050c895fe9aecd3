import test from "ava";
import packageJson from "../../package.json";
import { HELP, parseCommand } from "../../transformer/cli/arguments";
import { UsageError } from "../../transformer/terminal/usage-error";
import { makeProject } from "../hosts/project";
import { lockweave } from "./command";

/** The usage error of a command line, or `none`. */
function complaint(...args: string[]): string {
  try {
    parseCommand(args);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  return "none";
}

test("the command line accepts commands and options in any order", (t) => {
  t.deepEqual(parseCommand(["list"]), {
    name: "list",
    project: undefined,
    typescript: undefined,
    json: false,
  });
  t.deepEqual(parseCommand(["--json", "list", "-p", "a"]), {
    name: "list",
    project: "a",
    typescript: undefined,
    json: true,
  });
  t.deepEqual(parseCommand(["check", "--project=a"]), {
    name: "check",
    project: "a",
    typescript: undefined,
    outputs: [],
    json: false,
    watch: false,
  });
  t.deepEqual(parseCommand(["build", "--typescript", "typescript-7"]), {
    name: "build",
    project: undefined,
    typescript: "typescript-7",
    watch: false,
  });
  const twice = ["check", "--output", "a", "--output=-b"];
  t.deepEqual(parseCommand(twice), {
    name: "check",
    project: undefined,
    typescript: undefined,
    outputs: ["a", "-b"],
    json: false,
    watch: false,
  });
  const expandedByShell = ["check", "--output", "a.js", "b.js"];
  t.deepEqual(parseCommand(expandedByShell), {
    name: "check",
    project: undefined,
    typescript: undefined,
    outputs: ["a.js", "b.js"],
    json: false,
    watch: false,
  });
  for (const flag of ["--help", "-h"]) t.deepEqual(parseCommand(["check", flag]), { name: "help" });
});

test("the command line suggests a name for an unknown command or option, and reports wrong use", (t) => {
  t.is(complaint("lst"), "There is no command `lst`. Did you mean `list`?");
  t.is(complaint("list", "--jsn"), "There is no option `--jsn`. Did you mean `--json`?");
  t.is(complaint("check", "--out", "a"), "There is no option `--out`. Did you mean `--output`?");
  t.is(complaint("check", "-x"), "There is no option `-x`.");
  t.is(parseCommand(["check", "--json"]).name, "check");
  t.is(complaint("list", "--output", "a"), "`lockweave list` takes no `--output`.");
  t.is(complaint("list", "src"), "Unexpected argument `src`.");
  t.is(complaint("check", "--output"), "Expected a path after `--output`.");
  t.is(complaint("check", "--output", "-p", "a"), "Expected a path after `--output`.");
  t.is(complaint("check", "--output="), "Expected a path after `--output`.");
  t.is(complaint("list", "--json=yes"), "`--json` takes no value.");
  t.is(complaint("list", "-p", "a", "-p", "b"), "`--project` appears twice.");
  t.is(complaint("build", "--typescript"), "Expected a package or a path after `--typescript`.");
  t.is(complaint("build", "--typescript", "a", "--typescript", "b"), "`--typescript` appears twice.");
  t.is(
    complaint("check", "-w", "--json"),
    "`--watch` checks only the tags, so it cannot be combined with `--json`.",
  );
  t.is(
    complaint("check", "-w", "--output", "a"),
    "`--watch` checks only the tags, so it cannot be combined with `--output`.",
  );
  t.is(
    complaint(),
    "Expected a command: `init`, `list`, `check`, `build`, `diff`, `eject`, `top`, `tail`, `ui`, `inspect`, or `release`.",
  );
  t.is(complaint("constructor"), "There is no command `constructor`.");
});

test.serial("--help and --version print to stdout, and an unknown command exits with 2", async (t) => {
  const project = await makeProject({ "src/a.ts": "export {};\n" });
  t.deepEqual(await lockweave(project, "--help"), { code: 0, stdout: HELP, stderr: "" });
  t.is((await lockweave(project, "--version")).stdout, `${packageJson.version}\n`);
  t.deepEqual(await lockweave(project, "chek"), {
    code: 2,
    stdout: "",
    stderr: "lockweave: There is no command `chek`. Did you mean `check`?\nSee `lockweave --help`.\n",
  });
});

test.serial("a command exits with 2 if its project is missing, broken, empty, or without tags", async (t) => {
  const project = await makeProject({
    "src/a.ts": "export {};\n",
    "broken/tsconfig.json": `{ "files": ["none.ts"`,
    "empty/tsconfig.json": `{ "files": [] }`,
    "old/tsconfig.json": `{ "files": ["../src/a.ts"] }`,
    "old/node_modules/typescript/package.json": `{ "main": "version.js" }`,
    "old/node_modules/typescript/version.js": `exports.version = "7.0.2";`,
  });
  for (const [path, message] of [
    ["nowhere", /There is no `nowhere`/],
    ["broken", /broken.tsconfig\.json: .*expected/],
    ["empty", /empty.tsconfig\.json: .*empty/],
  ] as const) {
    const { code, stdout, stderr } = await lockweave(project, "list", "-p", path);
    t.deepEqual([code, stdout], [2, ""], path);
    t.regex(stderr, message, path);
  }
  const withoutTags = await lockweave(project, "check");
  t.is(withoutTags.code, 2);
  t.regex(withoutTags.stderr, /This project has no tags\. Fix: /);
  // If the project's own TypeScript has no API, Lockweave's reads the project.
  t.is((await lockweave(project, "list", "-p", "old")).code, 0);
});
