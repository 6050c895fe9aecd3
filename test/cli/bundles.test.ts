import { rm } from "node:fs/promises";
import test from "ava";
import { makeProject, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { runTool } from "./tools";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

// Whether check proves what bundlers and minifiers make of tspc's output.

const ORDER = `import { times, shop, Busy, Status, type Order, type Signal } from "./shop.js";
const LIMIT = 3;
export class OrderService {
  protected tenant = shop.name;
  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 retryTimes=1000000 watchdog=false */
  async pay(orderNo: string, fast: boolean): Promise<string> {
    if (fast) return shop.charge(orderNo);
    return shop.charge(orderNo + "slowly");
  }
  /** @redisLock businessFlag=refund keyName=order,this.tenant keyType=VALUE onFailure=skip reentrant=true */
  async refund(order: string): Promise<string | undefined> { return shop.charge(order); }
  /** @redisLock businessFlag=bean keyName=order keyType=CLASS fieldName=user.id,lines[0].sku onFailure=Busy */
  async bean({ order, ...rest }: { order: Order; more: string }): Promise<string> { return shop.charge(order.id + rest.more); }
  /** @redisLock businessFlag=json keyName=body keyType=JSON fieldName=id */
  async json(body: string): Promise<string> { try { return shop.charge(body); } catch { return "failed"; } }
  /** @redisLock businessFlag=text keyName="\`\${Status.Open}-\${order?.user.id ?? 'none'}-x\`" */
  async text(order?: Order): Promise<string> { return shop.charge(String(order)); }
  /** @redisLock businessFlag=signal signal=options.signal */
  async signal(options: Record<"signal" | "other", Signal>): Promise<string> { return shop.charge(String(options)); }
  /** @redisLock businessFlag=short signal=signal */
  async short(signal: Signal): Promise<string> { return shop.charge(String(signal)); }
  /** @redisLock businessFlag=times lockTime="\${times.lockTime}" wait="\${times.seconds}s" permits="\${LIMIT}" */
  async times(): Promise<string> { return shop.charge("times"); }
  /** @redisLock businessFlag=stream keyName=count */
  async *stream(count: number): AsyncGenerator<number> { yield count; yield (await shop.charge("a")).length; }
}
/** @redisLock businessFlag='"quoted" ü' keyName=a */
export const arrow = async (a: string): Promise<string> => shop.charge(a);
/** @redisLock businessFlag=helper */
export async function helper(a: string): Promise<string> { return more(await shop.charge(a)); function more(b: string): string { return a + b; } }
/** @redisLock businessFlag=using */
export async function using(): Promise<void> { using gate = shop.open(); gate.pass(); }
/** @redisLock businessFlag=spread */
export async function spread(order: Order): Promise<object> { return { ...order, paid: true }; }
`;
const SHOP = `export const times = { lockTime: "20s", seconds: 5 } as const;
export type Signal = undefined;
export class Busy extends Error {}
export enum Status { Open = 1 }
export interface Order { id: string; user: { id: number }; lines: { sku: string }[] }
export const shop = { name: "shop", charge: async (text: string): Promise<string> => text,
  open: (): Disposable & { pass(): void } => ({ pass() {}, [Symbol.dispose]() {} }) };
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { arrow, helper, OrderService, spread, using } from "./order.js";
configure({ store: memoryStore() });
export const service = new OrderService();
export { arrow, helper, spread, using };
`;
const FILES = { "src/order.ts": ORDER, "src/shop.ts": SHOP, "src/main.ts": MAIN };
const ALL = "The locks of all 13 tags are in the output. The types in tags were checked.\n";

let compiled: Promise<Project> | undefined;

async function compile(): Promise<Project> {
  const project = await makeProject(FILES, { lib: ["es2022", "esnext.disposable"] });
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
  return project;
}

/** Edits of tags, each with the line of its tag. */
const CHANGES = [
  [
    ["5", "lockTime=20", "lockTime=21"],
    ["10", "order,this.tenant", "this.tenant"],
    ["12", "user.id,", "user.name,"],
    ["14", "fieldName=id", "fieldName=no"],
    ["16", "-x", "-y"],
  ],
  [
    ["5", "keyName=orderNo", "keyName=fast"],
    ["10", "onFailure=skip", ""],
    ["12", "onFailure=Busy", ""],
    ["16", "user.id ??", "id ??"],
    ["18", "signal=options.signal", "signal=options.other"],
    ["20", "signal=signal", "wait=0"],
    ["22", "seconds}s", "seconds}m"],
  ],
] as const;

const BUNDLE = {
  entryPoints: ["out/main.js"],
  outdir: "bundle",
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
};

for (const [title, options] of Object.entries({
  "a bundle": {},
  "a minified bundle": { minify: true, sourcemap: "inline", banner: { js: "/* site businessFlag */" } },
  "a bundle with the runtime in it": { packages: "bundle", external: ["ioredis", "redis"], minify: true },
  "a CommonJS bundle for an old Node": { target: "es2017", format: "cjs", minify: true, keepNames: true },
  "a bundle with splitting": { splitting: true, entryPoints: ["out/main.js", "out/order.js"] },
})) {
  bundles(title, (project) =>
    runTool(project, "esbuild", `tool.buildSync(${JSON.stringify({ ...BUNDLE, ...options })})`),
  );
}

for (const target of ["node20", "es2015"]) {
  bundles(`webpack's production build for ${target} with the runtime in it`, (project) =>
    runTool(
      project,
      "webpack",
      `tool({
        mode: "production",
        target: ["node", ${JSON.stringify(target)}],
        context: process.cwd(),
        entry: "./out/main.js",
        output: { path: process.cwd() + "/bundle", library: { type: "commonjs" } },
        externals: ["ioredis", "redis", "pg", "postgres", "@opentelemetry/api"],
      }, (error, stats) => {
        if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString());
      });`,
    ),
  );
}

function bundles(title: string, build: (project: Project) => Promise<void>): void {
  inMatrix(`check verifies ${title} until a tag changes`, async (t) => {
    const project = await (compiled ??= compile());
    await project.write({ "src/order.ts": ORDER });
    await rm(project.path("bundle"), { recursive: true, force: true });
    await build(project);
    t.deepEqual(await lockweave(project, "check", "--output", "bundle"), {
      code: 0,
      stdout: ALL,
      stderr: "",
    });

    for (const changes of CHANGES) {
      let changed = ORDER;
      for (const [, from, to] of changes) changed = changed.replace(from, to);
      await project.write({ "src/order.ts": changed });
      const { code, stderr } = await lockweave(project, "check", "--output", "bundle");
      t.is(code, 1);
      t.deepEqual(
        stderr.match(/(?<=^src\/order\.ts:)\d+(?=:7: .* its lock in .* differs from the tag)/gm),
        changes.map(([line]) => line),
      );
    }
  });
}

inMatrix("check verifies the output of swc's minifier", async (t) => {
  const project = await (compiled ??= compile());
  await project.write({ "src/order.ts": ORDER });
  await runTool(
    project,
    "@swc/core",
    `const { code } = tool.minifySync(fs.readFileSync("out/order.js", "utf8"), { module: true, compress: true, mangle: true });
fs.mkdirSync("min");
fs.writeFileSync("min/order.js", code);`,
  );
  t.deepEqual(await lockweave(project, "check", "--output", "min/*.js"), {
    code: 0,
    stdout: ALL,
    stderr: "",
  });
});
