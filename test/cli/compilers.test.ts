import { dirname, join } from "node:path";
import { rm, symlink } from "node:fs/promises";
import test from "ava";
import { makeProject, tsconfig, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { install, runTool } from "./tools";

// Every compiler that ignores the plugin, on the same sources.

const ORDER = `export class OrderService {
  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
  async pay(orderNo: string): Promise<string> {
    return orderNo;
  }
}
/** @redisLock businessFlag=tick */
export const tick = async (): Promise<void> => {};
`;

/** An application in one file. */
const APP = `import { configure, memoryStore, shutdown } from "lockweave";
configure({ store: memoryStore() });
class OrderService {
  /** @redisLock businessFlag=payOrder keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return "paid " + orderNo;
  }
}
console.log(await new OrderService().pay("Test001"));
await shutdown();
`;

/** Each writes `out/order.js` and keeps the comments where it can. */
const COMPILERS: Record<string, (project: Project) => Promise<void>> = {
  "plain tsc": async (project) => void (await project.tsc()),
  "plain tsc -b": async (project) => {
    await project.write({ "tsconfig.json": tsconfig({ composite: true }) });
    await project.tsc("-b");
    // TypeScript considers it up to date: a build with tspc behind it changes nothing, and must not pass either.
  },
  "TypeScript 7": async (project) => {
    await project.run(join(dirname(await install("typescript")), "node_modules/typescript/bin/tsc"));
  },
  esbuild: (project) =>
    runTool(project, "esbuild", `tool.buildSync({ entryPoints: ["src/order.ts"], outdir: "out" })`),
  "esbuild as a bundler": (project) =>
    runTool(
      project,
      "esbuild",
      `tool.buildSync({ entryPoints: ["src/order.ts"], outdir: "out", bundle: true, minify: true, sourcemap: "inline", format: "esm", external: ["lockweave"] })`,
    ),
  swc: (project) =>
    runTool(
      project,
      "@swc/core",
      `const jsc = { parser: { syntax: "typescript" }, target: "es2022" };
${writeOut(`tool.transformSync(text, { jsc }).code`)}`,
    ),
  "Node's type stripping": (project) =>
    // What Node has built in.
    runTool(project, "amaro", writeOut(`tool.transformSync(text, { mode: "strip-only" }).code`)),
};

function writeOut(code: string): string {
  return `const text = fs.readFileSync("src/order.ts", "utf8");
fs.mkdirSync("out");
fs.writeFileSync("out/order.js", ${code});`;
}

for (const [name, compile] of Object.entries(COMPILERS)) {
  test.serial(`what ${name} writes is no proof`, async (t) => {
    const project = await makeProject({ "src/order.ts": ORDER });
    await compile(project);
    t.regex(await project.read("out/order.js"), /\bpay\(/);
    const compiled = await lockweave(project, "check");
    t.is(compiled.code, 1);
    t.regex(
      compiled.stderr,
      /^src\/order\.ts:2:7: `OrderService\.pay` is not proved to be locked: `out\/order\.js` does not lock it\.\nsrc\/order\.ts:7:5: `tick` is not/,
    );
    t.regex(compiled.stderr, /\n-> Compile with `tspc`: plain `tsc`, TypeScript 7, esbuild, swc/);
    t.is(/tspc -b --force/.test(compiled.stderr), name.endsWith("-b"));
    const bundled = await lockweave(project, "check", "--output", "out");
    t.is(bundled.code, 1);
    t.regex(
      bundled.stderr,
      /^src\/order\.ts:2:7: .*`out` does not lock it\.\n.*\n-> Compile with `tspc`, and bundle/,
    );
  });
}

for (const [name, compile] of Object.entries(COMPILERS)) {
  test.serial(`an application that ${name} built does not start`, async (t) => {
    const project = await makeProject({ "src/order.ts": APP }, { types: ["node"] });
    await compile(project);
    const { code, stdout, stderr } = await project.run("out/order.js");
    t.is(code, 1);
    t.is(stdout, "");
    t.regex(stderr, /LOCK_NOT_WOVEN/);
    t.regex(stderr, /This build was not woven.*Compile with tspc/);
  });
}

test.serial("the same application starts when tspc built it", async (t) => {
  const project = await makeProject({ "src/order.ts": APP }, { types: ["node"] });
  t.like(await project.tspc(), { code: 0 });
  t.like(await project.run("out/order.js"), { code: 0, stdout: "paid Test001\n", stderr: "" });
});

test.serial("the sources themselves, as Node runs them, are no proof", async (t) => {
  const project = await makeProject({ "src/order.ts": ORDER });
  t.like(await lockweave(project, "check", "--output", "src/order.ts"), { code: 1 });
});

test.serial("a project with TypeScript 7 alone is read with ours", async (t) => {
  const project = await makeProject({ "src/order.ts": ORDER });
  const seven = join(dirname(await install("typescript")), "node_modules/typescript");
  await rm(project.path("node_modules/typescript"));
  await symlink(seven, project.path("node_modules/typescript"));
  await project.run("node_modules/typescript/bin/tsc");
  t.like(await lockweave(project, "list"), { code: 0, stderr: "" });
  t.like(await lockweave(project, "check"), { code: 1 });
});
