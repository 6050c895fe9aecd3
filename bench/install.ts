/**
 * Measures the cost of an installation: the size of the package and of its dependencies in an empty project, and the time to load each
 * entry point in a new process, without the time of an empty program.
 *
 *     npm run bench -- install [<turns>]
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [turns = 31] = process.argv.slice(2).map(Number);

/** The first statements of a program. Each run prints how long they took, and how many files they loaded. */
const WAYS_IN: Readonly<Record<string, string>> = {
  lockweave: `require("lockweave")`,
  "lockweave, and a first lock in memory": `const { configure, memoryStore, withLock } = require("lockweave"); configure({ store: memoryStore(), woven: false }); void withLock("k", {}, () => {})`,
  "lockweave/transformer": `require("lockweave/transformer")`,
  "lockweave/register": `require("lockweave/register")`,
  "the parser": `require("./node_modules/lockweave/dist/transformer/parser/typescript.js")`,
};

const project = mkdtempSync(join(tmpdir(), "lockweave-install-"));

function main(): void {
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", project];
  const packed = execFileSync("npm", pack, { cwd: resolve(__dirname, ".."), encoding: "utf8" });
  const [{ filename, size, unpackedSize }] = JSON.parse(packed) as [
    Record<"filename", string> & Record<"size" | "unpackedSize", number>,
  ];
  writeFileSync(join(project, "package.json"), "{}");
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", join(project, filename)], {
    cwd: project,
  });
  console.log(`packed ${kilobytes(size)}, unpacked ${kilobytes(unpackedSize)}`);
  console.log("installed by `npm install lockweave`:");
  for (const name of packagesIn(project)) {
    console.log(`  ${name}: ${kilobytes(sizeOf(join(project, "node_modules", name)))}`);
  }
  console.log(`load time in a new process, median of ${turns} (quartiles):`);
  const costs = new Map<string, Cost[]>(Object.keys(WAYS_IN).map((name) => [name, []]));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [name, code] of Object.entries(WAYS_IN)) costs.get(name)?.push(load(code));
  }
  for (const [name, measured] of costs) {
    const [low, median, high] = [0.25, 0.5, 0.75].map((share) => quantile(measured, share).toFixed(1));
    console.log(`  ${name}: ${median} ms (${low} to ${high}), ${measured[0]?.files} files`);
  }
}

interface Cost {
  readonly ms: number;
  readonly files: number;
}

function load(code: string): Cost {
  const program = `const start = performance.now();
${code};
const ms = performance.now() - start;
console.log(JSON.stringify({ ms, files: Object.keys(require.cache).length }));`;
  const { stdout } = spawnSync(process.execPath, ["--eval", program], { cwd: project, encoding: "utf8" });
  return JSON.parse(stdout) as Cost;
}

function quantile(costs: readonly Cost[], share: number): number {
  const sorted = costs.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return sorted[Math.round(share * (sorted.length - 1))] ?? NaN;
}

function packagesIn(directory: string): string[] {
  const names = readdirSync(join(directory, "node_modules")).filter((name) => !name.startsWith("."));
  return names.flatMap((name) =>
    name.startsWith("@")
      ? readdirSync(join(directory, "node_modules", name)).map((inner) => `${name}/${inner}`)
      : [name],
  );
}

function sizeOf(directory: string): number {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(join(directory, name)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`;
}

try {
  main();
} finally {
  rmSync(project, { recursive: true });
}
