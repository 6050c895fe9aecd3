import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import test from "ava";
import packageJson from "../package.json";
import * as lockweave from "../runtime";
import { DEFAULTS } from "../runtime/lock/settings";
import { ABOUT_ATTRIBUTES } from "../transformer/hosts/language-service/attributes";
import { ATTRIBUTES } from "../transformer/read/attributes";
import { makeProject } from "./hosts/project";
import { SMALLEST_ACCESS } from "./stores/access";

const root = resolve(__dirname, "..");
const page = (file: string): string => readFileSync(join(root, file), "utf8");
const readme = page("README.md");
const api = page("docs/api.md");

const translated = page("README.zh-CN.md");
const codeIn = (text: string): string[] =>
  [...text.matchAll(/```(?:ts|js|json)\n(.*?)```/gs)].map(([, code = ""]) => code);

const marked = [...readme.matchAll(/<!-- (\S+) -->\s+```(?:ts|js)\n(.*?)```/gs)];

test("every marked piece of code in the README is code of a file that runs", (t) => {
  t.true(marked.length >= 5);
  for (const [, file = "", code = ""] of marked) {
    t.true(readFileSync(join(root, file), "utf8").includes(code), `${file} does not have:\n${code}`);
  }
});

test("no other piece of program code stands in the README but the call of configure()", (t) => {
  const all = [...readme.matchAll(/```(?:ts|js)\n(.*?)```/gs)].map(([, code]) => code);
  const known = new Set(marked.map(([, , code]) => code));
  t.deepEqual(
    all.filter((code) => !known.has(code)),
    ['import { configure } from "lockweave";\n\nconfigure({ redis: "redis://localhost:6379" });\n'],
  );
});

test("the unit test in the README compiles as it stands, with the README's settings", async (t) => {
  const [, unitTest = ""] = /<!-- docs\/hosts\.md -->\s+```ts\n(.*?)```/s.exec(readme) ?? [];
  const settings = codeIn(readme).find((code) => code.includes("compilerOptions")) ?? "";
  const project = await makeProject({
    "tsconfig.json": settings,
    "src/orders.ts": `export class Orders {
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: { readonly no: string }): Promise<string> { return order.no; }
}
`,
    "src/orders.test.ts": unitTest,
    "node_modules/vitest/package.json": JSON.stringify({ name: "vitest", types: "index.d.ts" }),
    "node_modules/vitest/index.d.ts": `type Run = () => unknown;
export function afterAll(run: Run): void;
export function afterEach(run: Run): void;
export function test(name: string, run: Run): void;
export function expect(value: unknown): { toEqual(value: unknown): void };
`,
  });
  t.like(await project.tspc("--noEmit"), { code: 0, stdout: "" });
});

test("the README in Chinese has the same code, and the same attributes with the same defaults", (t) => {
  t.deepEqual(codeIn(translated), codeIn(readme));
  const attributes = (text: string): string[] =>
    [...text.matchAll(/^\| (`\w+`) +\| (`\w+`)?/gm)].map(([, name = "", value = ""]) => `${name} ${value}`);
  t.deepEqual(attributes(translated), attributes(readme));
});

for (const file of ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs/benchmarks.md"]) {
  test(`the commands in ${file} are scripts of the package`, (t) => {
    const scripts: Record<string, string> = packageJson.scripts;
    const named = [...page(file).matchAll(/\bnpm (start|test|run ([\w:]+))/g)];
    t.true(named.length > 0);
    for (const [, word = "", name = word] of named) t.true(name in scripts, name);
  });
}

for (const file of [
  "README.md",
  "README.zh-CN.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
]) {
  test(`what ${file} links to in the repository is there`, (t) => {
    for (const [, path = ""] of page(file).matchAll(/\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g)) {
      t.true(existsSync(join(root, dirname(file), path)), path);
    }
    t.pass();
  });
}

test("the page of the API lists every error class with its code", (t) => {
  for (const [name, value] of Object.entries(lockweave)) {
    if (!name.startsWith("Lock") || name === "LockError") continue;
    const ErrorClass = value as new (message: string) => lockweave.LockError;
    const { code } = new ErrorClass("");
    t.true(new RegExp(`^\\| \`${code}\` +\\| \`${name}\` +\\|`, "m").test(api), name);
  }
});

test("the README's tag table has every option with the runtime's default", (t) => {
  const rows = new Map(
    [...readme.matchAll(/^\| `(\w+)` +\| `(\w+)` +\| .* \|$/gm)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  );
  t.is(rows.get("lockTime"), String(DEFAULTS.lockTimeMs / 1000));
  t.is(rows.get("waitTime"), String(DEFAULTS.waitTimeMs));
  for (const name of [
    "retryTimes",
    "onFailure",
    "watchdog",
    "autoUnlock",
    "reentrant",
    "fencing",
    "replicas",
    "mode",
    "permits",
  ] as const) {
    t.is(rows.get(name), String(DEFAULTS[name]), name);
  }
});

test("what the editor tells of an attribute stands in the README's tag table, word for word", (t) => {
  const rows = [...readme.matchAll(/^\| `(\w+)` +\|(.*?)\| (.*) \|$/gm)].map(
    ([, name = "", byDefault = "", meaning = ""]) =>
      [name, { byDefault: byDefault.trim(), meaning: meaning.trim() }] as const,
  );
  const told = Object.entries(ABOUT_ATTRIBUTES).map(([name, { byDefault, meaning }]) => [
    name,
    { byDefault, meaning },
  ]);
  t.deepEqual(rows, told);
  t.deepEqual(rows.map(([name]) => name).toSorted(), ATTRIBUTES.toSorted());
});

test("the access that the page of the API asks of a Redis user is the one that the stores are tested under", (t) => {
  t.true(api.includes(`ACL SETUSER app on >password ${SMALLEST_ACCESS}\n`));
});
