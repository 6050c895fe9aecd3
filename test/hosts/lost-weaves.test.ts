import { symlink } from "node:fs/promises";
import test from "ava";
import ts from "typescript";
import { lockweave } from "../cli/command";
import { makeProject, tsconfig, type Project, type Settings } from "./project";

// Ways to lose a weave: each is found by the compiler, at start, or by `lockweave check`.

const FUNCTION = "export async function pay(id: string): Promise<string> { return id; }";

/** Ways to write a tag that locks nothing, and the error that the compiler has for each. */
const MISWRITTEN: Readonly<Record<string, readonly [code: string, source: string]>> = {
  "a letter less": ["LW1007", `/** @redisLok businessFlag=f keyName=id */ ${FUNCTION}`],
  "the plural": ["LW1007", `/** @RedisLocks businessFlag=f */ ${FUNCTION}`],
  "two words": ["LW1007", `/** @redis lock businessFlag=f */ ${FUNCTION}`],
  "another name with our attributes": ["LW1007", `/** @lock businessFlag=f lockTime=20 */ ${FUNCTION}`],
  "behind another tag": ["LW1009", `/** @see foo @redisLock: businessFlag=f */ ${FUNCTION}`],
  "in a line comment": ["LW1008", `// @redisLock businessFlag=f\n${FUNCTION}`],
  "in a plain comment": ["LW1008", `/* @redisLock businessFlag=f */ ${FUNCTION}`],
  "in parentheses": ["LW1011", `/** @redisLock(businessFlag=f) */ ${FUNCTION}`],
  "on a synchronous function": ["LW1302", "/** @redisLock businessFlag=f */ export function pay() {}"],
  "on a type": ["LW1305", "export interface A { /** @redisLock businessFlag=f */ pay(): Promise<void> }"],
  "on an export": [
    "LW1301",
    `/** @redisLock businessFlag=f */ export { pay as p };\n${FUNCTION.replace("export ", "")}`,
  ],
  "on what wraps a function": [
    "LW1301",
    `declare const retry: <F>(f: F) => F;\n/** @redisLock businessFlag=f */ export const p = retry(pay);\n${FUNCTION}`,
  ],
};

test.serial(
  "a tag that is miswritten or misplaced is an error, and its function refuses to run",
  async (t) => {
    const names = Object.keys(MISWRITTEN);
    const sources = Object.values(MISWRITTEN).map(([, source], index) => [
      `src/way${index}.ts`,
      `${source}\n`,
    ]);
    const project = await makeProject(Object.fromEntries(sources) as Record<string, string>);
    const { code, stdout } = await project.tspc();
    t.is(code, 2);
    for (const [index, name] of names.entries()) {
      const [expected = ""] = MISWRITTEN[name] ?? [];
      t.regex(stdout, new RegExp(`src/way${index}\\.ts\\(\\d+,\\d+\\): error TS90\\d+: ${expected}: `), name);
      if (name === "on a type") continue;
      t.regex(await project.read(`out/way${index}.js`), /lockweave\.refuse\(/, name);
    }
  },
);

const APP = `import { configure, memoryStore } from "lockweave";
import { pay } from "../lib/index.js";
configure({ store: memoryStore() });
await pay("A1");
`;
const LIB = `/** @redisLock businessFlag=payOrder keyName=id */\n${FUNCTION}\n`;
const COMPOSITE: Settings = { composite: true, rootDir: ".", outDir: "out" };

async function ofTwoParts(library: Settings = COMPOSITE): Promise<Project> {
  return await makeProject({
    "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "app" }] }),
    "lib/tsconfig.json": tsconfig(library, {}),
    "lib/index.ts": 'export { pay } from "./pay.js";\n',
    "lib/pay.ts": LIB,
    "app/tsconfig.json": tsconfig(COMPOSITE, { references: [{ path: "../lib" }] }),
    "app/main.ts": APP,
  });
}

async function assertFound(
  t: { regex(text: string, pattern: RegExp): void; not(a: unknown, b: unknown): void },
  project: Project,
): Promise<void> {
  const built = await project.tspc("-p", "app");
  t.not(built.code, 0);
  t.regex(
    built.stdout,
    /^app\/main\.ts\(2,21\): error TS901403: LW1403: This takes in `pay` with `@redisLock`, and `pay\.js` does not hold the lock: /,
  );
  const checked = await lockweave(project, "check");
  t.not(checked.code, 0);
  t.regex(checked.stderr, /lib\/pay\.ts:1:5: `pay` is not proved to be locked/);
}

test.serial("a library that plain tsc has built is an error at the import of the application", async (t) => {
  const project = await ofTwoParts();
  t.is((await project.tsc("-b", "lib")).code, 0);
  await assertFound(t, project);
});

test.serial(
  "so is one that was edited and built again by plain tsc, and one whose tsconfig has no plugin",
  async (t) => {
    const project = await ofTwoParts();
    t.like(await project.tspc("-b"), { code: 0, stdout: "" });
    t.is((await lockweave(project, "check")).code, 0);
    await project.write({ "lib/pay.ts": LIB.replace("return id", 'return "paid " + id') });
    t.is((await project.tsc("-b", "lib")).code, 0);
    await assertFound(t, project);

    await project.write({ "lib/tsconfig.json": tsconfig({ ...COMPOSITE, plugins: [] }, {}) });
    const built = await project.tspc("-b", "--force");
    t.not(built.code, 0);
    t.regex(built.stdout, /LW1403/);
  },
);

/** A library whose declarations show none of its tags. */
const HIDDEN = {
  "lib/index.ts":
    'import { log } from "./log.js";\nexport class Shop {\n  async run(): Promise<void> { await this.#pay("a"); await this.ship("a"); await log("a"); }\n  /** @redisLock businessFlag=payOrder keyName=id */\n  async #pay(id: string): Promise<string> { return id; }\n  /** @redisLock businessFlag=ship keyName=id */\n  private async ship(id: string): Promise<string> { return id; }\n}\n',
  "lib/log.ts": LIB.replaceAll("pay", "log"),
  "app/main.ts":
    'import { configure, memoryStore } from "lockweave";\nimport { Shop } from "../lib/index.js";\nconfigure({ store: memoryStore() });\nawait new Shop().run();\n',
};

test.serial("tags that no declaration shows are found in the sources of a referenced project", async (t) => {
  const library = { ...COMPOSITE, removeComments: true, outDir: "../out/lib" };
  const project = await ofTwoParts(library);
  await project.write({ ...HIDDEN, "lib/pay.ts": "export {};\n" });
  t.is((await project.tsc("-b", "lib")).code, 0);
  t.notRegex(await project.read("out/lib/index.d.ts"), /redisLock|log/);
  const { code, stdout } = await project.tspc("-p", "app");
  t.not(code, 0);
  t.regex(
    stdout,
    /^app\/main\.ts\(2,22\): error TS901403: LW1403: This takes in `Shop\.#pay`, `Shop\.ship` .*`index\.js`/m,
  );
  t.regex(stdout, /^app\/main\.ts\(2,22\): error TS901403: LW1403: This takes in `log` .*`log\.js`/m);
  t.like(await project.tspc("-b", "--force"), { code: 0, stdout: "" });
});

test.serial("so are those of a linked package whose declaration maps lead to its sources", async (t) => {
  const { "lib/index.ts": source, "lib/log.ts": log, "app/main.ts": app } = HIDDEN;
  const library = await makeProject(
    {
      "src/index.ts": source,
      "src/log.ts": log,
      "package.json": `{ "name": "shop", "version": "1.0.0", "type": "module", "exports": "./out/index.js" }`,
    },
    { removeComments: true, declaration: true, declarationMap: true },
  );
  const project = await makeProject({ "src/main.ts": app.replace("../lib/index.js", "shop") });
  await symlink(library.dir, project.path("node_modules/shop"));
  t.is((await library.tsc()).code, 0);
  const { code, stdout } = await project.tspc();
  t.is(code, 2);
  t.regex(
    stdout,
    /^src\/main\.ts\(2,22\): error TS901403: LW1403: This takes in `Shop\.#pay`, `Shop\.ship` /,
  );
  t.regex((await lockweave(project, "check", "--json")).stdout, /"code": "LW1403"/);
  t.is((await library.tspc()).code, 0);
  t.like(await project.tspc(), { code: 0, stdout: "" });
  await library.write({ "out/index.d.ts.map": "{" });
  t.like(await project.tspc(), { code: 0, stdout: "" });
});

test.serial(
  "an installed package without its locks is an error, and `lockweave check` says so too",
  async (t) => {
    const project = await makeProject({
      "node_modules/shop/package.json": `{ "name": "shop", "version": "1.0.0", "type": "module", "exports": "./index.js" }`,
      "node_modules/shop/index.js": "export async function pay(id) { return id; }\n",
      "node_modules/shop/index.d.ts": `/** @redisLock businessFlag=pay keyName=id */\nexport declare function pay(id: string): Promise<string>;\n`,
      "src/main.ts": `import { pay } from "shop";\n/** @redisLock businessFlag=twice keyName=id */\nexport async function payTwice(id: string): Promise<string> { return pay(await pay(id)); }\n`,
    });
    const built = await project.tspc();
    t.is(built.code, 2);
    t.regex(built.stdout, /^src\/main\.ts\(1,21\): error TS901403: LW1403: /);
    const checked = await lockweave(project, "check", "--json");
    t.is(checked.code, 1);
    const { problems } = JSON.parse(checked.stdout) as {
      problems: { file: string; line: number; code: string }[];
    };
    t.like(problems, [{ file: "src/main.ts", line: 1, code: "LW1403" }]);
  },
);

const ALONE = `import { configure, memoryStore } from "lockweave";
configure({ store: memoryStore() });
/** @redisLock businessFlag=pay keyName=id */
${FUNCTION}
void pay("A1");
`;

test.serial("plain tsc, and a compiler that only takes types away, make what does not start", async (t) => {
  const project = await makeProject({ "src/main.ts": ALONE });
  t.is((await project.tsc()).code, 0);
  t.regex((await project.run("out/main.js")).stderr, /LOCK_NOT_WOVEN.*|This build was not woven/);
  t.is((await lockweave(project, "check")).code, 1);
  const { outputText } = ts.transpileModule(ALONE, { compilerOptions: { module: ts.ModuleKind.ESNext } });
  await project.write({ "out/main.js": outputText });
  t.regex((await project.run("out/main.js")).stderr, /This build was not woven/);
  t.is((await lockweave(project, "check", "--output", "out")).code, 1);
});

test.serial("an output that is older than its tags, or missing, is found by `lockweave check`", async (t) => {
  const project = await makeProject({ "src/main.ts": ALONE });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.is((await lockweave(project, "check")).code, 0);
  await project.write({ "src/main.ts": ALONE.replace("keyName=id", "keyName=id lockTime=20") });
  t.regex((await lockweave(project, "check")).stderr, /lockTime=\(default\) instead of lockTime=20s/);
  await project.write({ "src/other.ts": LIB });
  t.regex((await lockweave(project, "check")).stderr, /other\.js` does not exist/);
});

test.serial(
  "code that looks like a lock of ours is woven, and is no lock to `lockweave check`",
  async (t) => {
    const project = await makeProject({
      "src/main.ts": `interface Door { open(site: object): object; acquire(lock: object): Promise<boolean>; release(lock: object): Promise<void> }
export const makePay = (lockweave: Door) =>
  /** @redisLock businessFlag=pay keyName=id */
  async (id: string): Promise<string> => { const lock = lockweave.open({ site: "makePay", businessFlag: "pay" }); while (!(await lockweave.acquire(lock))); try { return id; } catch (error) { throw error; } finally { await lockweave.release(lock); } };
`,
    });
    t.is((await project.tsc()).code, 0);
    t.is((await lockweave(project, "check")).code, 1);
    t.regex((await lockweave(project, "list")).stdout, /makePay +LOCK_pay_\{id\}/);
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.is((await lockweave(project, "check")).code, 0);
  },
);

test.serial("configure() by way of a barrel is told of the weave, and only by it", async (t) => {
  const project = await makeProject({
    "src/locks.ts": `export * from "./inner.js";\n`,
    "src/inner.ts": `export { configure as setUp, memoryStore } from "lockweave";\n`,
    "src/main.ts": `import { memoryStore, setUp } from "./locks.js";\nsetUp({ store: memoryStore() });\n`,
  });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.like(await project.run("out/main.js"), { code: 0, stderr: "" });
  t.is((await project.tsc()).code, 0);
  t.regex((await project.run("out/main.js")).stderr, /This build was not woven/);
});

test.serial("a number that makes no sense in its unit is a warning, and the build succeeds", async (t) => {
  const project = await makeProject({
    "src/a.ts": `/** @redisLock businessFlag=f lockTime=30000 */ ${FUNCTION}\n`,
  });
  const { code, stdout, stderr } = await project.tspc();
  t.deepEqual([code, stdout], [0, ""]);
  t.regex(stderr, /^src\/a\.ts\(1,40\): warning TS901111: LW1111: `lockTime=30000` is 8\.3 hours\. /);
});

test.serial("the plugin has a short name, too", async (t) => {
  const project = await makeProject(
    { "src/main.ts": ALONE },
    { plugins: [{ transform: "lockweave", transformProgram: true }] },
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.like(await project.run("out/main.js"), { code: 0, stderr: "" });
  t.is((await lockweave(project, "check")).code, 0);
});
