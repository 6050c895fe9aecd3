/**
 * What the weave costs a build, on a generated project of which every twentieth file has tags. Three builds by turns:
 * `tspc` without plugins (none), with a program transformer that does nothing (empty), which is what ts-patch itself
 * costs, and with the weave (woven). Prints medians of the ratios of one turn, of the CPU time that the compiler's
 * process used and of the time on the wall; then what a rebuild after one change takes, with `--incremental`.
 *
 *     npm run bench:compile [-- <turns> [<files>]]
 */
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const TAGGED_OF = 20;
const [turns = 7, FILES = 1_000] = process.argv.slice(2).map(Number);

const VARIANTS = ["none", "empty", "woven"] as const;
type Variant = (typeof VARIANTS)[number];

interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

const root = resolve(__dirname, "..");
const project = mkdtempSync(join(tmpdir(), "lockweave-compile-"));
try {
  generate();
  for (const variant of VARIANTS) build(variant); // Warms the disk cache, and shows that all of them build.
  report("a whole build", []);
  for (const variant of VARIANTS) build(variant, "--incremental");
  report("a rebuild after one change", ["--incremental"]);
} finally {
  rmSync(project, { recursive: true });
}

/** One turn after another, each of which begins with another variant: whoever runs later finds a warmer machine. */
function report(what: string, args: readonly string[]): void {
  const costs: Record<Variant, Cost[]> = { none: [], empty: [], woven: [] };
  for (let turn = 0; turn < turns; turn += 1) {
    for (let at = 0; at < VARIANTS.length; at += 1) {
      const variant = VARIANTS[(turn + at) % VARIANTS.length] ?? "none";
      if (args.length > 0)
        appendFileSync(join(project, "src/service-0.ts"), `export const change${turn}${at} = 1;\n`);
      costs[variant].push(build(variant, ...args));
    }
  }
  console.log(`${what} of ${FILES} files, one in ${TAGGED_OF} with tags, ${turns} turns:`);
  for (const [measure, unit] of [
    ["cpuMs", "CPU"],
    ["wallMs", "wall"],
  ] as const) {
    const of = (variant: Variant): number[] => costs[variant].map((cost) => cost[measure]);
    const medians = VARIANTS.map((variant) => `${variant} ${quantile(of(variant), 0.5).toFixed(0)} ms`);
    console.log(`  ${unit}: ${medians.join(", ")}`);
    for (const [one, other] of [
      ["empty", "none"],
      ["woven", "empty"],
      ["woven", "none"],
    ] as const) {
      const ratios = of(one).map((ms, index) => ms / (of(other)[index] ?? NaN));
      const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(3));
      console.log(`    ${one} / ${other}: ${middle} (quartiles ${low} to ${high})`);
    }
  }
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.round(share * (values.length - 1))] ?? NaN;
}

function build(variant: Variant, ...args: readonly string[]): Cost {
  const start = performance.now();
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      "--require",
      join(project, "cpu.cjs"),
      join(root, "node_modules/ts-patch/bin/tspc.js"),
      "-p",
      `tsconfig.${variant}.json`,
      ...args,
    ],
    { cwd: project, encoding: "utf8" },
  );
  const wallMs = performance.now() - start;
  if (status !== 0) throw new Error(`the ${variant} build failed:\n${stdout}`);
  return { cpuMs: Number(readFileSync(join(project, "cpu.txt"), "utf8")), wallMs };
}

function generate(): void {
  mkdirSync(join(project, "src"));
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/lockweave"));
  symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "cpu.cjs"),
    `process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  require("node:fs").writeFileSync(${JSON.stringify(join(project, "cpu.txt"))}, String((user + system) / 1000));
});`,
  );
  writeFileSync(join(project, "empty.cjs"), "module.exports = (program) => program;");
  const transforms = { empty: join(project, "empty.cjs"), woven: join(root, "dist/transformer/index.js") };
  for (const variant of VARIANTS) {
    const plugins = variant === "none" ? [] : [{ transform: transforms[variant], transformProgram: true }];
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      types: ["node"],
      rootDir: "src",
      outDir: `out-${variant}`,
      plugins,
    };
    writeFileSync(
      join(project, `tsconfig.${variant}.json`),
      JSON.stringify({ compilerOptions, include: ["src"] }),
    );
  }
  for (let file = 0; file < FILES; file += 1) {
    writeFileSync(join(project, `src/service-${file}.ts`), service(file, file % TAGGED_OF === 0));
  }
}

function service(file: number, isTagged: boolean): string {
  const uses = [1, 7, 31].map((step) => file - step).filter((other) => other >= 0);
  const tag = (attributes: string): string =>
    isTagged ? `  /** @redisLock businessFlag=service${file} ${attributes} */\n` : "";
  return `${uses.map((other) => `import { Service${other}, type Order${other} } from "./service-${other}.js";`).join("\n")}
export interface Order${file} { id: string; lines: { sku: string; count: number; price: number }[]; customer: { id: number; tier?: "gold" | "silver" } }
export class Service${file} {
  readonly #orders = new Map<string, Order${file}>();
${uses.map((other) => `  readonly service${other} = new Service${other}();`).join("\n")}
${tag("keyName=order.id lockTime=20")}  async place(order: Order${file}): Promise<number> {
    const total = order.lines.reduce((sum, line) => sum + line.count * line.price, 0);
    this.#orders.set(order.id, { ...order, lines: order.lines.filter((line) => line.count > 0) });
    if (order.customer.tier === "gold") return this.discount(total);
    return total;
  }
${tag("keyName=id,customer.id")}  async cancel(id: string, customer: Order${file}["customer"]): Promise<boolean> {
    const order = this.#orders.get(id);
    if (order === undefined || order.customer.id !== customer.id) return false;
    return this.#orders.delete(id);
  }
  async discount(total: number): Promise<number> {
    const rates = { gold: 0.9, silver: 0.95 } as const;
    return Object.entries(rates).reduce((best, [tier, rate]) => (tier === "gold" ? best * rate : best), total);
  }
  bySku(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { lines } of this.#orders.values()) for (const { sku, count } of lines) counts[sku] = (counts[sku] ?? 0) + count;
    return counts;
  }
${uses.map((other) => `  async copy${other}(order: Order${other}): Promise<number> { return this.place({ ...order, id: \`\${order.id}-${file}\` }); }`).join("\n")}
}
`;
}
