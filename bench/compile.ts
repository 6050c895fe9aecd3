/**
 * What the weave costs a build: `tspc` with the plugin against `tspc` without it, on a generated project of
 * 1,000 files of which 50 have tags. Prints the median of paired runs.
 *
 *     npm run bench:compile [-- <pairs>]
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const FILES = 1_000;
const TAGGED = 50;
const pairs = Number(process.argv[2] ?? 15);

const root = resolve(__dirname, "..");
const project = mkdtempSync(join(tmpdir(), "lockweave-compile-"));
try {
  generate();
  const ratios: number[] = [];
  build("woven"); // Warms the disk cache, and shows that both build.
  build("plain");
  for (let pair = 1; pair <= pairs; pair += 1) {
    // Whoever runs second finds a warmer machine: take turns.
    const first = pair % 2 === 0 ? "woven" : "plain";
    const times = { [first]: build(first) } as Record<string, number>;
    const second = first === "woven" ? "plain" : "woven";
    times[second] = build(second);
    const { woven = NaN, plain = NaN } = times;
    ratios.push(woven / plain);
    console.log(
      `pair ${pair}: plain ${plain.toFixed(0)} ms, woven ${woven.toFixed(0)} ms, ratio ${(woven / plain).toFixed(3)}`,
    );
  }
  ratios.sort((a, b) => a - b);
  const quantile = (share: number): string =>
    (ratios[Math.round(share * (ratios.length - 1))] ?? NaN).toFixed(3);
  console.log(
    `\nwoven / plain over ${pairs} pairs of ${FILES} files, ${TAGGED} with tags: median ${quantile(0.5)} (quartiles ${quantile(0.25)} to ${quantile(0.75)})`,
  );
} finally {
  rmSync(project, { recursive: true });
}

function build(variant: string): number {
  const start = performance.now();
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(root, "node_modules/ts-patch/bin/tspc.js"), "-p", `tsconfig.${variant}.json`],
    { cwd: project, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`the ${variant} build failed:\n${stdout}`);
  return performance.now() - start;
}

function generate(): void {
  mkdirSync(join(project, "src"));
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/lockweave"));
  symlinkSync(join(root, "node_modules/@types"), join(project, "node_modules/@types"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  for (const variant of ["plain", "woven"]) {
    const plugins = [{ transform: join(root, "dist/transformer/index.js"), transformProgram: true }];
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      types: ["node"],
      rootDir: "src",
      outDir: `out-${variant}`,
      ...(variant === "woven" ? { plugins } : {}),
    };
    writeFileSync(
      join(project, `tsconfig.${variant}.json`),
      JSON.stringify({ compilerOptions, include: ["src"] }),
    );
  }
  for (let file = 0; file < FILES; file += 1) {
    writeFileSync(join(project, `src/service-${file}.ts`), service(file, file % (FILES / TAGGED) === 0));
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
