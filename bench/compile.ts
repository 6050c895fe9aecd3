/**
 * Measures the cost of the weave in a build, on a generated application in which every twentieth file has tags. Four builds alternate:
 *
 * - none: `tspc` without plugins
 * - empty: `tspc` with a program transformer that does nothing, which is the cost of ts-patch itself
 * - written: the same for sources that already contain the generated lock code, so the compiler has as much code to check as in `woven`
 * - woven: `tspc` with the weave
 *
 * Prints medians of the ratios within a turn and of the differences, for the CPU time of the compiler's process and for elapsed time. Then
 * it does the same for a rebuild after one change, with `--incremental` and with `--watch`.
 *
 *     npm run bench -- compile [<turns> [<files>]]
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeApplication } from "./application";

const TAGGED_OF = 20;
const [turns = 7, FILES = 1_000] = process.argv.slice(2).map(Number);

/** The first rebuilds of a watch are not counted, because the compiler itself is not optimized yet. */
const WARM_UP = 2;

const VARIANTS = ["none", "empty", "written", "woven"] as const;
type Variant = (typeof VARIANTS)[number];

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** The directories of the sources: with tags, and with the lock code in their place. */
const SOURCES = ["src", "written"] as const;

const root = resolve(__dirname, "..");
const tspc = join(root, "node_modules/ts-patch/bin/tspc.js");
const project = mkdtempSync(join(tmpdir(), "lockweave-compile-"));

async function main(): Promise<void> {
  generate();
  console.log(`${FILES} files, one in ${TAGGED_OF} with tags, ${turns} turns`);
  for (const variant of VARIANTS) build(variant); // Warms the disk cache, and shows that all variants build.
  report(
    "a whole build",
    inTurns((variant) => build(variant)),
  );

  for (const variant of VARIANTS) build(variant, "--incremental");
  const rebuild = (variant: Variant): Cost => {
    change();
    return build(variant, "--incremental");
  };
  report("a rebuild after one change, with --incremental", inTurns(rebuild));

  const watched: Record<Variant, Cost[]> = { none: [], empty: [], written: [], woven: [] };
  for (const variant of [...VARIANTS, ...VARIANTS.toReversed()])
    watched[variant].push(...(await watch(variant)));
  report("a rebuild after one change, with --watch", watched);
}

/** Runs the variants in turns. Each turn starts with another variant, because later runs find a warmer machine. */
function inTurns(run: (variant: Variant) => Cost): Record<Variant, Cost[]> {
  const costs: Record<Variant, Cost[]> = { none: [], empty: [], written: [], woven: [] };
  for (let turn = 0; turn < turns; turn += 1) {
    for (let at = 0; at < VARIANTS.length; at += 1) {
      const variant = VARIANTS[(turn + at) % VARIANTS.length] ?? "none";
      costs[variant].push(run(variant));
    }
  }
  return costs;
}

function report(what: string, costs: Record<Variant, readonly Cost[]>): void {
  console.log(`${what}:`);
  for (const [measure, unit] of [
    ["cpuMs", "CPU"],
    ["wallMs", "wall"],
  ] as const) {
    const valuesOf = (variant: Variant): number[] => costs[variant].map((cost) => cost[measure]);
    const medians = VARIANTS.map((variant) => `${variant} ${quantile(valuesOf(variant), 0.5).toFixed(0)} ms`);
    console.log(`  ${unit}: ${medians.join(", ")}`);
    for (const [one, other] of [
      ["empty", "none"],
      ["written", "empty"],
      ["woven", "written"],
      ["woven", "empty"],
      ["woven", "none"],
    ] as const) {
      const pairs = valuesOf(one).map((ms, index) => [ms, valuesOf(other)[index] ?? NaN] as const);
      const ratios = quartiles(pairs.map(([ms, otherMs]) => ms / otherMs)).map((ratio) => ratio.toFixed(3));
      const longer = quartiles(pairs.map(([ms, otherMs]) => ms - otherMs)).map((ms) => ms.toFixed(0));
      console.log(
        `    ${one} / ${other}: ${ratios[1]} (quartiles ${ratios[0]} to ${ratios[2]}), ${longer[1]} ms longer (${longer[0]} to ${longer[2]})`,
      );
    }
  }
}

function quartiles(values: readonly number[]): number[] {
  return [0.25, 0.5, 0.75].map((share) => quantile(values, share));
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.round(share * (values.length - 1))] ?? NaN;
}

function build(variant: Variant, ...args: readonly string[]): Cost {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--require", join(project, "cpu.cjs"), tspc, "-p", `tsconfig.${variant}.json`, ...args],
    { cwd: project, encoding: "utf8" },
  );
  const wallMs = performance.now() - start;
  if (status !== 0) throw new Error(`the ${variant} build failed:\n${stdout}${stderr}`);
  return { cpuMs: Number(readFileSync(join(project, "cpu.txt"), "utf8")), wallMs };
}

let changes = 0;

/** Changes a tagged file that other files import. */
function change(): void {
  changes += 1;
  for (const directory of SOURCES) {
    appendFileSync(join(project, directory, "service-0.ts"), `export const change${changes} = 1;\n`);
  }
}

/** Returns the costs of the rebuilds of one watching compiler. */
async function watch(variant: Variant): Promise<Cost[]> {
  const child = spawn(
    process.execPath,
    ["--require", join(project, "cpu.cjs"), tspc, "-p", `tsconfig.${variant}.json`, "--watch"],
    { cwd: project, stdio: ["ignore", "pipe", "inherit", "ipc"] },
  );
  const cpuMs = async (): Promise<number> => {
    child.send("How much?");
    const [ms] = (await once(child, "message")) as [number];
    return ms;
  };
  let unread = "";
  child.stdout?.setEncoding("utf8");
  const ended = async (): Promise<void> => {
    while (!unread.includes("Watching for file changes.")) {
      const [text] = (await once(child.stdout ?? child, "data")) as [string];
      unread += text;
    }
    unread = "";
  };
  await ended();
  const costs: Cost[] = [];
  for (let turn = -WARM_UP; turn < turns; turn += 1) {
    const cpuMsBefore = await cpuMs();
    const start = performance.now();
    change();
    await ended();
    const wallMs = performance.now() - start;
    const cost = { wallMs, cpuMs: (await cpuMs()) - cpuMsBefore };
    if (turn >= 0) costs.push(cost);
  }
  child.kill();
  await once(child, "exit");
  return costs;
}

function generate(): void {
  mkdirSync(join(project, "src"));
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/lockweave"));
  symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "cpu.cjs"),
    `const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
process.on("exit", () => require("node:fs").writeFileSync(${JSON.stringify(join(project, "cpu.txt"))}, String(cpuMs())));
if (process.send) process.on("message", () => process.send(cpuMs()));`,
  );
  writeFileSync(join(project, "empty.cjs"), "module.exports = (program) => program;");
  writeApplication(project, FILES, TAGGED_OF);
  cpSync(join(project, "src"), join(project, "written"), { recursive: true });
  const empty = join(project, "empty.cjs");
  const transforms = {
    none: undefined,
    empty,
    written: empty,
    woven: join(root, "dist/transformer/index.js"),
  };
  for (const variant of VARIANTS) {
    const directory = variant === "written" ? "written" : "src";
    const transform = transforms[variant];
    const plugins = transform === undefined ? [] : [{ transform, transformProgram: true }];
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      types: ["node"],
      rootDir: directory,
      outDir: `out-${variant}`,
      plugins,
    };
    writeFileSync(
      join(project, `tsconfig.${variant}.json`),
      JSON.stringify({ compilerOptions, include: [directory] }),
    );
  }
  eject();
}

/** Replaces the tags in `written` with the generated lock code. */
function eject(): void {
  const command = [
    join(root, "dist/transformer/cli/main.js"),
    "eject",
    "-p",
    "tsconfig.written.json",
    "--yes",
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: project, encoding: "utf8" });
  if (status !== 0) throw new Error(`lockweave eject failed:\n${stdout}${stderr}`);
}

void main().finally(() => rmSync(project, { recursive: true }));
