import { execFile, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import packageJson from "../package.json";
import * as lockweave from "../runtime";
import { ABOUT_ATTRIBUTES } from "../runtime/attributes/documentation";
import { codeUnder } from "./hosts/bundlers/recipes";
import { makeProject } from "./hosts/project";
import { HOSTS, makeHosted } from "./hosts/register/project";
import { SMALLEST_ACCESS } from "./stores/access";

const root = resolve(__dirname, "..");
const page = (file: string): string => readFileSync(join(root, file), "utf8");
const READMES = ["README.md", "README.zh-CN.md"];
const DOCS = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
const readme = page("README.md");
const api = page("docs/api.md");

/** Returns the code blocks in some languages. */
function codeIn(text: string, languages = "ts|js|json|sh|text"): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`(?:${languages})\n(.*?)^\`\`\``, "gms"))].map(
    ([, code = ""]) => code,
  );
}

/** Returns the code blocks that name the file which contains them. */
const markedIn = (text: string): readonly (readonly [file: string, code: string])[] =>
  [...text.matchAll(/<!-- (\S+\.\S+) -->\s+```(?:ts|js)\n(.*?)```/gs)].map(([, file = "", code = ""]) => [
    file,
    code,
  ]);

test("each block of code that names a file is part of that file", (t) => {
  for (const marked of [...READMES, ...DOCS].flatMap((file) => markedIn(page(file)))) {
    const [file, code] = marked;
    t.true(page(file).includes(code), `${file} does not contain:\n${code}`);
  }
  t.is(markedIn(readme).length, 2);
  t.true(markedIn(api).length >= 2);
});

const [program = "", unitTest = "", ...otherCode] = codeIn(readme, "ts");
const output = codeIn(readme, "text");

test("the first program in the README is a complete example and prints what the README shows", async (t) => {
  t.is(program, page("examples/buy/buy.mts"));
  t.deepEqual(otherCode, []);
  const project = await makeHosted({ "buy.mts": program });
  t.deepEqual([(await project.run(...HOSTS.tsx, "buy.mts")).stdout], output);
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "examples/buy/buy.mjs")]);
  t.deepEqual([stdout], output);
});

test("the unit test in the README passes, with the settings for tspc in docs/compilers.md", async (t) => {
  const project = await makeProject({
    "tsconfig.json": codeUnder("tspc", "tsconfig.json"),
    "src/pay.ts": `/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<string> { return orderNo; }
`,
    "src/pay.test.ts": unitTest,
    "node_modules/vitest/package.json": JSON.stringify({
      name: "vitest",
      main: "index.js",
      types: "index.d.ts",
    }),
    "node_modules/vitest/index.d.ts": `export function test(name: string, run: () => unknown): void;
export function expect(value: unknown): { toEqual(value: unknown): void };
`,
    "node_modules/vitest/index.js": `exports.test = async (name, run) => {
  await run();
  console.log("passed: " + name);
};
exports.expect = (value) => ({ toEqual: (other) => require("node:assert").deepEqual(value, other) });
`,
  });
  t.like(await project.tspc("--rootDir", "src", "--outDir", "out"), { code: 0, stdout: "" });
  t.is((await project.run("out/pay.test.js")).stdout, "passed: pay() holds the lock of its order\n");
});

test("the README in Chinese has the same code, links, and attributes", (t) => {
  const translated = page("README.zh-CN.md");
  const linksIn = (text: string): string[] =>
    [...text.matchAll(/\]\(([^)]+)\)/g)]
      .map(([, link = ""]) => link)
      .filter((link) => !link.startsWith("README"))
      .toSorted();
  const attributesIn = (text: string): string[] =>
    [...text.matchAll(/^\| (`\w+`) +\| (`\w+`)?/gm)].map(([, name = "", value = ""]) => `${name} ${value}`);
  t.deepEqual(codeIn(translated), codeIn(readme));
  t.deepEqual(linksIn(translated), linksIn(readme));
  t.deepEqual(attributesIn(translated), attributesIn(readme));
});

for (const file of READMES) {
  test(`every command in ${file} can be copied into any shell`, (t) => {
    const commands = codeIn(page(file), "sh");
    const [start, whole] = ["npm ci && npm start\n", "npm ci && npm test\n"];
    t.deepEqual(commands.slice(-2), [start, whole]);
    for (const command of commands.slice(0, -2)) t.notRegex(command, /#|&&|^\w+=/m);
  });
}

for (const file of [
  "README.md",
  "README.zh-CN.md",
  "CONTRIBUTING.md",
  "docs/benchmarks.md",
  "bench/README.md",
]) {
  test(`the commands in ${file} are scripts of the package`, (t) => {
    const scripts: Record<string, string> = packageJson.scripts;
    const named = [...page(file).matchAll(/\bnpm (start|test|run ([\w:]+))/g)];
    t.true(named.length > 0);
    for (const [, word = "", name = word] of named) t.true(name in scripts, name);
    for (const [, script = "", name = ""] of page(file).matchAll(/\bnpm run (bench|proof) -- ([\w-]+)/g))
      t.regex(usageOf(script), new RegExp(`^  ${name} `, "m"), name);
  });
}

/** Returns the text that lists the names for a script. */
function usageOf(script: string): string {
  const { stderr } = spawnSync("npm", ["run", "--silent", script], { cwd: root, encoding: "utf8" });
  return stderr;
}

for (const script of ["bench", "proof"]) {
  test(`\`npm run ${script}\` without a known name prints the names`, (t) => {
    const [, command = ""] = /^node (\S+)$/.exec(packageJson.scripts[script as "bench" | "proof"]) ?? [];
    for (const args of [[], ["unknown"]]) {
      const { status, stderr } = spawnSync(process.execPath, [command, ...args], {
        cwd: root,
        encoding: "utf8",
      });
      t.is(status, 2);
      t.regex(stderr, new RegExp(`Usage: npm run ${script} -- <name>`));
    }
  });
}

test("docs/api.md lists every error class with its code", (t) => {
  for (const [name, value] of Object.entries(lockweave)) {
    if (!name.startsWith("Lock") || name === "LockError") continue;
    const ErrorClass = value as new (message: string) => lockweave.LockError;
    const { code } = new ErrorClass("");
    t.true(new RegExp(`^\\| \`${code}\` +\\| \`${name}\` +\\|`, "m").test(api), name);
  }
});

/** Returns the rows of the attribute table in a page. */
function attributeRows(text: string): Map<string, { readonly byDefault: string; readonly meaning: string }> {
  return new Map(
    [...text.matchAll(/^\| `(\w+)` +\|(.*?)\|(.*)\|$/gm)].map(
      ([, name = "", byDefault = "", meaning = ""]) => [
        name,
        { byDefault: byDefault.trim(), meaning: meaning.trim() },
      ],
    ),
  );
}

test("the README describes everyday attributes with the same texts as the editor", (t) => {
  const everyday = attributeRows(readme);
  t.is(everyday.size, 6);
  for (const [name, { byDefault, meaning }] of everyday) {
    t.like(ABOUT_ATTRIBUTES[name], { byDefault, meaning }, name);
  }
});

test("docs/api.md documents the Redis permissions that the store tests use", (t) => {
  t.true(api.includes(`ACL SETUSER app on >password ${SMALLEST_ACCESS}\n`));
});
