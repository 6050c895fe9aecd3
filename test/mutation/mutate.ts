import { spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { SeededRandom } from "../support/seeded-random";
import { mutantsOf, type Mutant } from "./mutants";

// npm run mutate [-- path ... [--sample count] [--seed number] [--jobs count]]
//
// Makes small changes to the code, one at a time, in copies of the repository, and runs the nearest tests: each
// change that no test notices is shown, but for those that are known to change nothing. Without paths: transformer/.

const ROOT = resolve(__dirname, "../..");
const TIMEOUT_MS = 180_000;

/** The nearest tests, by the start of the path. The first that fits counts. */
const NEAREST: readonly (readonly [path: string, ...tests: string[]])[] = [
  ["transformer/text", "test/transformer/weave/weave.test.ts", "test/transformer/read/*.test.ts"],
  [
    "transformer/read",
    "test/transformer/read/*.test.ts",
    "test/transformer/weave/*.test.ts",
    "test/fuzz/*.test.ts",
  ],
  [
    "transformer/weave",
    "test/transformer/weave/*.test.ts",
    "test/transformer/read/bad-tags.test.ts",
    "test/fuzz/*.test.ts",
  ],
  ["transformer/verify", "test/transformer/verify/*.test.ts", "test/cli/*.test.ts"],
  ["transformer/hosts", "test/hosts/*.test.ts"],
  ["transformer/cli", "test/cli/*.test.ts"],
  ["runtime/stores/redis", "test/runtime/redis*.test.ts"],
  ["runtime", "test/runtime/*.test.ts", "test/simulation/simulation.test.ts"],
];

/** Their tests run the built package. */
const BUILT = ["transformer/verify", "transformer/hosts", "transformer/cli"];

interface Known {
  readonly file: string;
  readonly code: string;
  readonly replacement: string;
  readonly why: string;
}

interface Change extends Mutant {
  readonly file: string;
  readonly text: string;
}

async function main(): Promise<void> {
  const { paths, options } = parse(process.argv.slice(2));
  const known = JSON.parse(readFileSync(join(__dirname, "equivalent.json"), "utf8")) as Known[];
  const all = filesAt(paths.length === 0 ? ["transformer"] : paths).flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return mutantsOf(file, text).map((mutant): Change => Object.assign(mutant, { file, text }));
  });
  const counted = all.filter((change) => !known.some((one) => isSame(one, change)));
  const random = new SeededRandom(options.seed);
  const chosen = counted
    .map((change) => ({ change, order: options.sample === undefined ? 0 : random.next() }))
    .toSorted((a, b) => a.order - b.order)
    .slice(0, options.sample)
    .map(({ change }) => change);
  console.log(
    `${all.length} mutants, ${all.length - counted.length} known to be equivalent, ${chosen.length} tried`,
  );
  const survivors: Change[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    const copy = copyOfRepository();
    try {
      for (let change = chosen[next++]; change !== undefined; change = chosen[next++]) {
        if (await isNoticed(copy, change)) continue;
        survivors.push(change);
        console.log(`survived: ${describe(change)}`);
      }
    } finally {
      rmSync(copy, { recursive: true });
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, work));
  const noticed = chosen.length - survivors.length;
  const share = chosen.length === 0 ? 100 : (100 * noticed) / chosen.length;
  console.log(
    `${noticed} of ${chosen.length} mutants noticed (${share.toFixed(1)} %), ${survivors.length} survived`,
  );
}

interface Options {
  readonly sample: number | undefined;
  readonly seed: number;
  readonly jobs: number;
}

function parse(args: readonly string[]): { paths: string[]; options: Options } {
  const numbers = new Map<string, number>();
  const paths: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? "";
    if (!arg.startsWith("--")) {
      paths.push(arg);
      continue;
    }
    const value = Number(args[at + 1]);
    if (!["--sample", "--seed", "--jobs"].includes(arg) || !(value >= 0)) {
      throw new Error(
        `Expected paths, --sample, --seed or --jobs with a number, got ${arg} ${args[at + 1] ?? ""}`,
      );
    }
    numbers.set(arg.slice(2), value);
    at += 1;
  }
  return {
    paths,
    options: {
      sample: numbers.get("sample"),
      seed: numbers.get("seed") ?? 1,
      jobs: numbers.get("jobs") ?? 1,
    },
  };
}

function filesAt(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (path.endsWith(".ts")) return [path];
    return readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => join(path, file));
  });
}

/** With its own sources, and the installed packages of this one. */
function copyOfRepository(): string {
  const copy = mkdtempSync(join(tmpdir(), "lockweave-mutants-"));
  for (const name of [
    "runtime",
    "transformer",
    "test",
    "dist",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
  ]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  mkdirSync(join(copy, "examples"));
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function isNoticed(copy: string, change: Change): Promise<boolean> {
  const path = join(copy, change.file);
  writeFileSync(
    path,
    change.text.slice(0, change.start) + change.replacement + change.text.slice(change.end),
  );
  try {
    if (BUILT.some((start) => change.file.startsWith(start)) && !(await build(copy, change))) return true;
    const [, ...tests] = NEAREST.find(([start]) => change.file.startsWith(start)) ?? [];
    const ava = join(ROOT, "node_modules/ava/entrypoints/cli.mjs");
    return !(await succeeds(copy, [ava, "--fail-fast", ...tests]));
  } finally {
    writeFileSync(path, change.text);
  }
}

/** What does not compile is noticed. */
async function build(copy: string, { file }: Change): Promise<boolean> {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const built = await succeeds(copy, [tsc, "-p", "tsconfig.build.json"]);
  return built || !file.startsWith("transformer");
}

function succeeds(cwd: string, args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, args, { cwd, stdio: "ignore", env: { ...process.env, CI: "1" } });
  return new Promise((finished) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS); // A mutant that never ends is noticed.
    child.on("close", (code) => {
      clearTimeout(timer);
      finished(code === 0);
    });
  });
}

function isSame({ file, code, replacement }: Known, change: Change): boolean {
  const { line } = placeOf(change);
  return file === change.file && replacement === change.replacement && line.includes(code);
}

function placeOf({ text, start }: Change): { number: number; line: string } {
  const number = text.slice(0, start).split("\n").length;
  return { number, line: text.split("\n")[number - 1]?.trim() ?? "" };
}

function describe(change: Change): string {
  const { number, line } = placeOf(change);
  const found = change.text.slice(change.start, change.end).replaceAll(/\s+/g, " ");
  return `${relative(".", change.file)}:${number}: \`${found}\` -> \`${change.replacement}\` in \`${line}\``;
}

void main();
