import test from "ava";
import packageJson from "../../package.json";
import { parseCommand } from "../../transformer/cli/arguments";
import { COMMANDS } from "../../transformer/cli/commands";
import { helpOf } from "../../transformer/cli/help";
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

const LIVE = ["top", "tail", "ui", "inspect", "release"];
const [REDIS, POSTGRES] = ["redis://localhost", "postgres://localhost/shop"];

/** Runs with these variables in place of the URLs of the environment. */
function withUrls<Result>(urls: { REDIS_URL?: string; POSTGRES_URL?: string }, run: () => Result): Result {
  const before = { REDIS_URL: process.env["REDIS_URL"], POSTGRES_URL: process.env["POSTGRES_URL"] };
  Object.assign(process.env, { REDIS_URL: "", POSTGRES_URL: "", ...urls });
  try {
    return run();
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

test.serial(
  "the live commands take the URL of Redis or PostgreSQL from an option, or else from the environment",
  (t) => {
    const targetOf = (...args: string[]): object => {
      const command = parseCommand(args);
      return "target" in command ? command.target : {};
    };
    for (const name of LIVE) {
      const redis = { redis: [REDIS], match: "LOCK_*", prefix: "" };
      const postgres = { postgres: POSTGRES, schema: "lockweave", match: "LOCK_*" };
      const line = name === "inspect" || name === "release" ? [name, "LOCK_a"] : [name];
      const both = { REDIS_URL: REDIS, POSTGRES_URL: POSTGRES };
      withUrls({ REDIS_URL: REDIS }, () => t.deepEqual(targetOf(...line), redis, name));
      withUrls({ POSTGRES_URL: POSTGRES }, () => t.deepEqual(targetOf(...line), postgres, name));
      withUrls(both, () => {
        t.deepEqual(targetOf(...line, "--redis", REDIS), redis, name);
        t.deepEqual(targetOf(...line, "--postgres", POSTGRES, "--schema", "own"), {
          ...postgres,
          schema: "own",
        });
        t.regex(
          complaint(...line),
          /^Both REDIS_URL and POSTGRES_URL are in the environment\. Fix: choose one/,
        );
      });
      withUrls({}, () => {
        t.regex(
          complaint(...line),
          /^Expected `--redis <url>` or `--postgres <url>`, or REDIS_URL or POSTGRES_URL/,
        );
        t.is(
          complaint(...line, "--redis", REDIS, "--postgres", POSTGRES),
          "Expected `--redis` or `--postgres`, but got both.",
        );
        t.is(
          complaint(...line, "--postgres", POSTGRES, "--postgres", POSTGRES),
          "`--postgres` appears twice.",
        );
        t.regex(complaint(...line, "--postgres", POSTGRES, "--prefix", "a"), /^`--prefix` is for Redis/);
        t.regex(complaint(...line, "--redis", REDIS, "--schema", "a"), /^`--schema` is for PostgreSQL/);
        t.is(complaint(...line, "--postgres"), "Expected a URL after `--postgres`.");
      });
    }
  },
);

test("the command line accepts commands and options in any order", (t) => {
  t.deepEqual(parseCommand(["list"]), {
    name: "list",
    project: undefined,
    typescript: undefined,
    json: false,
    write: undefined,
  });
  t.deepEqual(parseCommand(["list", "--write", "LOCKS.md"]), {
    name: "list",
    project: undefined,
    typescript: undefined,
    json: false,
    write: "LOCKS.md",
  });
  t.deepEqual(parseCommand(["--json", "list", "-p", "a"]), {
    name: "list",
    project: "a",
    typescript: undefined,
    json: true,
    write: undefined,
  });
  t.deepEqual(parseCommand(["check", "--project=a", "--list", "LOCKS.md"]), {
    name: "check",
    project: "a",
    typescript: undefined,
    outputs: [],
    list: "LOCKS.md",
    maxWarnings: undefined,
    json: false,
    watch: false,
  });
  t.like(parseCommand(["check", "--max-warnings", "0"]), { name: "check", maxWarnings: 0 });
  t.deepEqual(parseCommand(["build", "--typescript", "typescript-7"]), {
    name: "build",
    project: undefined,
    typescript: "typescript-7",
    watch: false,
  });
  t.deepEqual(parseCommand(["init"]), { name: "init", isAgreed: false, store: undefined });
  t.deepEqual(parseCommand(["init", "-y", "--store", "postgres"]), {
    name: "init",
    isAgreed: true,
    store: "postgres",
  });
  const twice = ["check", "--output", "a", "--output=-b"];
  t.deepEqual(parseCommand(twice), {
    name: "check",
    project: undefined,
    typescript: undefined,
    outputs: ["a", "-b"],
    list: undefined,
    maxWarnings: undefined,
    json: false,
    watch: false,
  });
  const expandedByShell = ["check", "--output", "a.js", "b.js"];
  t.deepEqual(parseCommand(expandedByShell), {
    name: "check",
    project: undefined,
    typescript: undefined,
    outputs: ["a.js", "b.js"],
    list: undefined,
    maxWarnings: undefined,
    json: false,
    watch: false,
  });
  t.deepEqual(parseCommand(["--help"]), { name: "help", of: undefined });
  for (const flag of ["--help", "-h"])
    t.deepEqual(parseCommand(["check", flag]), { name: "help", of: "check" });
});

test("the command line suggests a name for an unknown command or option, and reports invalid arguments", (t) => {
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
  t.is(complaint("init", "--store"), "Expected redis or postgres after `--store`.");
  t.is(complaint("init", "--store", "mysql"), "Expected `--store` to be redis or postgres, got `mysql`.");
  t.is(complaint("init", "--store=redis", "--store=redis"), "`--store` appears twice.");
  t.is(complaint("list", "--store", "redis"), "`lockweave list` takes no `--store`.");
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
    complaint("check", "-w", "--list", "a"),
    "`--watch` checks only the tags, so it cannot be combined with `--list`.",
  );
  t.is(
    complaint("check", "-w", "--max-warnings", "0"),
    "`--watch` checks only the tags, so it cannot be combined with `--max-warnings`.",
  );
  for (const wrong of ["-1", "few", "1.5", "0x1", " "]) {
    t.is(
      complaint("check", `--max-warnings=${wrong}`),
      `Expected \`--max-warnings\` to be a number from 0, got \`${wrong}\`.`,
    );
  }
  t.is(complaint("check", "--max-warnings"), "Expected a number after `--max-warnings`.");
  t.is(complaint("list", "--max-warnings", "0"), "`lockweave list` takes no `--max-warnings`.");
  t.is(complaint("check", "--list"), "Expected a file after `--list`.");
  t.is(complaint("list", "--write", "a", "--write", "b"), "`--write` appears twice.");
  t.is(
    complaint("list", "--write", "a", "--json"),
    "`--write` writes Markdown, so it cannot be combined with `--json`.",
  );
  t.is(
    complaint(),
    "Expected a command: `init`, `list`, `check`, `build`, `diff`, `eject`, `top`, `tail`, `ui`, `inspect`, `release`, or `postgres`.",
  );
  t.is(complaint("constructor"), "There is no command `constructor`.");
});

test("the help lists all commands, and the help of a command lists exactly the options that it takes", (t) => {
  const optionsIn = (help: string): string[] =>
    [...help.matchAll(/^ +(?:-\w, )?--([\w-]+)/gm)].map(([, name = ""]) => name);
  t.deepEqual(optionsIn(helpOf()), ["help", "version"]);
  for (const [name, { summary, options }] of Object.entries(COMMANDS)) {
    t.regex(helpOf(), new RegExp(`^  ${name}(?: [<[].*?[\\]>])? +${summary.slice(0, 30)}`, "m"));
    const help = helpOf(name);
    t.regex(help, new RegExp(`^Usage: lockweave ${name} .*\n\n${summary.slice(0, 30)}`));
    t.deepEqual(optionsIn(help), [...options, "help"], name);
    for (const line of help.split("\n")) t.true(line.length <= 100, line);
  }
  t.is(helpOf("nonsense"), helpOf());
});

test.serial("--help and --version print to stdout, and an unknown command exits with 2", async (t) => {
  const project = await makeProject({ "src/a.ts": "export {};\n" });
  t.deepEqual(await lockweave(project, "--help"), { code: 0, stdout: helpOf(), stderr: "" });
  t.is((await lockweave(project, "diff", "--help")).stdout, helpOf("diff"));
  t.is((await lockweave(project, "--version")).stdout, `${packageJson.version}\n`);
  t.deepEqual(await lockweave(project, "chek"), {
    code: 2,
    stdout: "",
    stderr: "lockweave: There is no command `chek`. Did you mean `check`?\nSee `npx lockweave --help`.\n",
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
    ["nowhere", /There is no file or directory `nowhere`/],
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
