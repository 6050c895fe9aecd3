import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Finished, Project } from "./project";
import { installed } from "./installed";
import { HOSTS, makeHosted } from "./register/project";
import { installedJest } from "./jest/installed-jest";
import { inMatrix } from "../support/suites";

// Each coverage tool reports about tagged functions what it would report without their locks.

/** A tag for each form of woven code. */
const TAGS = [
  "businessFlag=plain keyName=id",
  "businessFlag=skip keyName=id onFailure=skip",
  'businessFlag=value keyName=id onFailure=skip skipValue="SKIPPED"',
  "businessFlag=reentrant keyName=id reentrant=true",
  "businessFlag=both keyName=id reentrant=true onFailure=skip",
  'businessFlag=when keyName=id when="isOther !== null"',
  'businessFlag=never keyName=id when="isOther === null" onFailure=skip',
  'key="mutex:${id}"',
  "businessFlag=shared mode=read",
  "businessFlag=permits permits=3 fencing=false",
  "businessFlag=busy keyName=id onFailure=Busy",
  "businessFlag=wait keyName=id wait=5s lockTime=10s",
];

const METHODS = TAGS.map(
  (tag, index) => `
  /** @redisLock ${tag} */
  async method${index}(id: string, isOther: boolean): Promise<string | undefined> {
    if (isOther) {
      return id + "other";
    }
    return id.length > 1 ? id : Promise.resolve(id);
  }
`,
);
const SOURCE = `import { sep } from "node:path";
export class Busy extends Error {}
export const SKIPPED = "skipped";
export class Orders {${METHODS.join("")}
}
/** @redisLock businessFlag=declared keyName=id */
export async function declared(id: string, isOther: boolean): Promise<string | undefined> {
  if (isOther) {
    return id + "other";
  }
  return id;
}
/** @redisLock businessFlag=arrow keyName=id onFailure=skip */
export const arrow = async (id: string): Promise<string | undefined> => id;
/** @redisLock businessFlag=generator keyName=id */
export async function* generator(id: string, isOther: boolean): AsyncGenerator<string> {
  if (isOther) {
    yield id + "other";
  }
  yield id;
}
/** @redisLock businessFlag=line keyName=id */
export async function line(id: string): Promise<string> { return id + sep; }
`;
const LINES = SOURCE.split("\n");
const OTHERS = LINES.flatMap((text, index) => (text.includes('"other"') ? [index + 1] : []));

/** Calls each function in each way that `areOther` lists. */
const calls = (areOther: readonly boolean[]): string => `
configure({ store: memoryStore() });
for (const isOther of [${areOther.join()}]) for (const id of ["a", "bb"]) {
  const orders = new Orders();
  ${TAGS.map((_tag, index) => `await orders.method${index}(id, isOther);`).join("\n  ")}
  await declared("a", isOther); await arrow("a"); await line("a");
  for await (const _one of generator("a", isOther));
}
await shutdown();
`;
const IMPORTS = (orders: string): string => `import { configure, memoryStore, shutdown } from "lockweave";
import { Orders, declared, arrow, generator, line } from "${orders}";
`;
const mainOf = (orders: string, areOther: readonly boolean[]): string => `${IMPORTS(orders)}
async function main(): Promise<void> {${calls(areOther)}}
void main();
`;

interface Tool {
  /** Runs the calls and writes the report. */
  readonly run: (project: Project, areOther: readonly boolean[]) => Promise<Finished>;
  readonly isCommonJs?: boolean;
}

const REPORTS = ["lcovonly"].map((name) => `--reporter=${name}`);
const INCLUDED = ["--include", "**/orders.*"];

function vitest(provider: string): Tool {
  return {
    async run(project, areOther) {
      await project.write({
        "src/orders.test.ts": `import { test } from "vitest";\n${IMPORTS("./orders.js")}test("runs", async () => {${calls(areOther)}});\n`,
        "vitest.config.mjs": `import lockweave from "lockweave/vite";
export default { plugins: [lockweave()], test: { coverage: ${JSON.stringify({
          enabled: true,
          provider,
          reporter: ["lcovonly"],
          include: ["src/orders.ts"],
        })} } };`,
      });
      return await project.run("node_modules/vitest/vitest.mjs", "run", "--no-color");
    },
  };
}

function jest(transformer: unknown, coverageProvider: string): Tool {
  return {
    isCommonJs: true,
    async run(project, areOther) {
      await project.write({
        "src/orders.test.ts": `${IMPORTS("./orders")}test("runs", async () => {${calls(areOther)}});\n`,
        "jest.config.json": JSON.stringify({
          cacheDirectory: "./cache",
          collectCoverage: true,
          coverageProvider,
          collectCoverageFrom: ["src/orders.ts"],
          coverageReporters: ["lcovonly"],
          transform: { "\\.ts$": ["lockweave/jest", { transformer }] },
        }),
      });
      return await project.run("node_modules/jest/bin/jest.js");
    },
  };
}

/** A tool that starts the program that it measures. */
function around(tool: string, host: "tspc" | keyof typeof HOSTS, isCommonJs = false): Tool {
  return {
    isCommonJs,
    async run(project, areOther) {
      const isCompiled = host === "tspc";
      await project.write({
        "src/main.ts": mainOf(host === "Node" ? "./orders.ts" : "./orders.js", areOther),
      });
      if (isCompiled) {
        const { code, stdout } = await project.tspc();
        if (code !== 0) throw new Error(stdout);
      }
      const node = join(await installed("node-24"), "node/bin/node");
      const program = [...(isCompiled ? [] : HOSTS[host]), isCompiled ? "out/main.js" : "src/main.ts"];
      if (tool === "node") {
        const reporter = ["--test-reporter=lcov", "--test-reporter-destination=coverage/lcov.info"];
        await project.write({ "coverage/lcov.info": "" });
        const coverage = ["--experimental-test-coverage", "--test-coverage-include=**/orders.*"];
        return await project.runWith(
          node,
          "--enable-source-maps",
          "--test",
          ...coverage,
          ...reporter,
          ...program,
        );
      }
      const after = tool === "nyc" ? ["--exclude-after-remap=false"] : [];
      const used = [...REPORTS, ...INCLUDED, ...after, node, "--enable-source-maps", ...program];
      return await project.run(`node_modules/${tool}/bin/${tool}.js`, ...used);
    },
  };
}

const bun: Tool = {
  async run(project, areOther) {
    await project.write({
      "src/orders.test.ts": `import { test } from "bun:test";\n${IMPORTS("./orders.js")}test("runs", async () => {${calls(areOther)}});\n`,
      "bunfig.toml": 'preload = ["lockweave/register"]\n\n[test]\npreload = ["lockweave/register"]\n',
    });
    const program = join(await installed("bun"), "bun/bin/bun.exe");
    return await project.runWith(program, "test", "--coverage", "--coverage-reporter=lcov");
  },
};

const BABEL = {
  presets: [["@babel/preset-env", { targets: { node: "current" } }], "@babel/preset-typescript"],
};

// With @swc/jest and Istanbul, the first line never counts as covered, with or without locks.
const TOOLS: Readonly<Record<string, Tool>> = {
  "Vitest with v8": vitest("v8"),
  "Vitest with Istanbul": vitest("istanbul"),
  "Jest with ts-jest and v8": jest("ts-jest", "v8"),
  "Jest with ts-jest and Istanbul": jest("ts-jest", "babel"),
  "Jest with babel-jest and v8": jest(["babel-jest", BABEL], "v8"),
  "Jest with babel-jest and Istanbul": jest(["babel-jest", BABEL], "babel"),
  "Jest with @swc/jest and v8": jest("@swc/jest", "v8"),
  "c8 and tspc": around("c8", "tspc"),
  "c8 and Node's type stripping": around("c8", "Node"),
  "c8 and tsx": around("c8", "tsx"),
  "nyc and tspc": around("nyc", "tspc", true),
  "bun test": bun,
  "node --test and tspc": around("node", "tspc"),
  "node --test and Node's type stripping": around("node", "Node"),
};

async function projectOf({ isCommonJs = false }: Tool): Promise<Project> {
  const project = await makeHosted(
    {
      "package.json": JSON.stringify({ type: isCommonJs ? "commonjs" : "module" }),
      "src/orders.ts": SOURCE,
    },
    { sourceMap: true, types: ["node"], lib: ["es2023"], esModuleInterop: true, isolatedModules: true },
  );
  const present = new Set(await readdir(project.path("node_modules")));
  for (const modules of [await installedJest(), await installed("coverage")]) {
    for (const name of await readdir(modules)) {
      if (name.startsWith(".") || present.has(name) || name === "@types") continue;
      present.add(name);
      await symlink(join(modules, name), project.path(`node_modules/${name}`));
    }
  }
  return project;
}

interface Report {
  /** The numbers of the lines that did not run. */
  readonly lines: readonly number[];
  /** The entries of functions and branches that did not run. */
  readonly others: readonly string[];
}

async function reportOf(project: Project, { run }: Tool, areOther: readonly boolean[]): Promise<Report> {
  const { code, stdout, stderr } = await run(project, areOther);
  if (code !== 0) throw new Error(stdout + stderr);
  const report = await project.read("coverage/lcov.info");
  const [ofOrders = ""] = /^SF:\S*orders\.ts$.*?^end_of_record/ms.exec(report) ?? [];
  if (ofOrders === "") throw new Error(`The report is not about orders.ts:\n${report}`);
  const lines = [...ofOrders.matchAll(/^DA:(\d+),0/gm)].map(([, line]) => Number(line));
  return { lines, others: [...ofOrders.matchAll(/^(?:FNDA:0,.*|BRDA:.*,(?:0|-))$/gm)].map(([all]) => all) };
}

for (const [name, tool] of Object.entries(TOOLS)) {
  inMatrix(
    `${name}: the coverage of tested functions is complete, and untested lines are reported`,
    async (t) => {
      t.timeout(300_000);
      const project = await projectOf(tool);
      t.deepEqual(await reportOf(project, tool, [true, false]), { lines: [], others: [] });
      const { lines } = await reportOf(project, tool, [false]);
      const withCode = lines.filter((line) => LINES[line - 1]?.trim() !== "}"); // Some tools count the brace after them, too.
      t.deepEqual(withCode, OTHERS);
    },
  );
}
