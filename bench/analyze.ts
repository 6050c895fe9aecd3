/**
 * Measures the cost of `lockweave check` compared with the type checker on the application of `bench:compile`, and the cost that `"analyze": true`
 * adds to a build. The runs alternate: `tsc --noEmit`, `lockweave check`, `tspc --noEmit` with the weave, and the same with the analysis.
 * Prints medians of the ratios within a turn, for CPU time and elapsed time.
 *
 *     npm run bench -- analyze [<turns> [<files>]]
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeApplication } from "./application";

const TAGGED_OF = 20;
const [turns = 5, FILES = 1_000] = process.argv.slice(2).map(Number);

const root = resolve(__dirname, "..");
const project = mkdtempSync(join(tmpdir(), "lockweave-analyze-"));

const tsc = join(root, "node_modules/typescript/bin/tsc");
const tspc = join(root, "node_modules/ts-patch/bin/tspc.js");

const RUNS = {
  tsc: [tsc, "-p", "tsconfig.json", "--noEmit"],
  check: [join(root, "dist/transformer/cli/main.js"), "check"],
  woven: [tspc, "-p", "tsconfig.json", "--noEmit"],
  analyzed: [tspc, "-p", "tsconfig.analyze.json", "--noEmit"],
} as const;
type Run = keyof typeof RUNS;
const NAMES = Object.keys(RUNS) as Run[];

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

function main(): void {
  generate();
  console.log(`${FILES} files, one in ${TAGGED_OF} with tags, ${turns} turns`);
  run("the build", [tspc, "-p", "tsconfig.json"]);
  for (const name of NAMES) run(name, RUNS[name]); // Warms the disk cache, and shows that all runs succeed.
  const costs: Record<Run, Cost[]> = { tsc: [], check: [], woven: [], analyzed: [] };
  for (let turn = 0; turn < turns; turn += 1) {
    for (let at = 0; at < NAMES.length; at += 1) {
      const name = NAMES[(turn + at) % NAMES.length] ?? "tsc";
      costs[name].push(run(name, RUNS[name]));
    }
  }
  for (const measure of ["cpuMs", "wallMs"] as const) {
    const valuesOf = (name: Run): number[] => costs[name].map((cost) => cost[measure]);
    console.log(
      `${measure === "cpuMs" ? "CPU" : "wall"}: ${NAMES.map((name) => `${name} ${quantile(valuesOf(name), 0.5).toFixed(0)} ms`).join(", ")}`,
    );
    for (const [one, other] of [
      ["check", "tsc"],
      ["analyzed", "woven"],
    ] as const) {
      const ratios = valuesOf(one).map((ms, index) => ms / (valuesOf(other)[index] ?? NaN));
      const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(3));
      console.log(`  ${one} / ${other}: ${middle} (quartiles ${low} to ${high})`);
    }
  }
}

function run(name: string, args: readonly string[]): Cost {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--require", join(project, "cpu.cjs"), ...args],
    {
      cwd: project,
      encoding: "utf8",
    },
  );
  const wallMs = performance.now() - start;
  if (status !== 0) throw new Error(`${name} failed:\n${stdout}${stderr}`);
  return { cpuMs: Number(readFileSync(join(project, "cpu.txt"), "utf8")), wallMs };
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.round(share * (values.length - 1))] ?? NaN;
}

function generate(): void {
  mkdirSync(join(project, "src"));
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/lockweave"));
  for (const name of ["@types", "typescript", "ts-patch"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "cpu.cjs"),
    `process.on("exit", () => require("node:fs").writeFileSync(${JSON.stringify(join(project, "cpu.txt"))}, String((process.cpuUsage().user + process.cpuUsage().system) / 1000)));`,
  );
  for (const [name, analyze] of [
    ["tsconfig.json", false],
    ["tsconfig.analyze.json", true],
  ] as const) {
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      types: ["node"],
      rootDir: "src",
      outDir: "out",
      plugins: [{ transform: "lockweave/transformer", transformProgram: true, analyze }],
    };
    writeFileSync(join(project, name), JSON.stringify({ compilerOptions, include: ["src"] }));
  }
  writeApplication(project, FILES, TAGGED_OF);
}

try {
  main();
} finally {
  rmSync(project, { recursive: true });
}
