import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { type ExecutionContext } from "ava";

const ROOT = join(__dirname, "../..");
const QUIETLY = join(__dirname, "quietly.mjs");

const PASSES = 'import test from "ava"; test("is paid", (t) => t.pass());\n';

/** Creates a project with these files and the real AVA. */
async function project(t: ExecutionContext, files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "summary-")));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const all = { "package.json": '{ "type": "module", "ava": { "timeout": "10m" } }', ...files };
  for (const [file, text] of Object.entries(all)) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), text);
  }
  await mkdir(join(dir, "node_modules/.bin"), { recursive: true });
  await symlink(join(ROOT, "node_modules/ava"), join(dir, "node_modules/ava"));
  await symlink("../ava/entrypoints/cli.mjs", join(dir, "node_modules/.bin/ava"));
  return dir;
}

async function run(dir: string, command: string): Promise<{ code: number | null; lines: readonly string[] }> {
  const child = spawn("sh", ["-c", command], { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, lines: output.trimEnd().split("\n") };
}

interface Outcome {
  readonly code: number | null;
  readonly summary: readonly string[];
  /** What it printed while it repeated the tests that had failed. */
  readonly repeated: readonly string[];
}

/** Runs all tests in the project. */
async function outcomeOf(dir: string): Promise<Outcome> {
  const { code, lines } = await run(dir, `node "${QUIETLY}"`);
  const ended = lines.slice(lines.indexOf("Failed. Repeat each one alone:"));
  const last = ended.findIndex((line) => /^\d+ passed, \d+ failed/.test(line));
  return { code, summary: ended.slice(0, last + 1), repeated: ended.slice(last + 1) };
}

test("the last line says how many tests passed, failed, and were skipped", async (t) => {
  const dir = await project(t, {
    "test/pay.test.js": `${PASSES}test.skip("is refunded", (t) => t.pass());\n`,
    "test/ship.test.js": PASSES,
  });
  const { code, lines } = await run(dir, `node "${QUIETLY}"`);
  t.is(code, 0);
  t.is(lines.at(-1), "2 passed, 0 failed, 1 skipped");
});

test("each failed test is named with a command that runs it alone", async (t) => {
  const dir = await project(t, {
    "test/orders/pay.test.js": `${PASSES}
test('costs "5 $" or 100 %, at \`most\`', (t) => t.is(1, 2));
test("costs nothing", (t) => t.is(1, 2, "and says so"));
`,
    "test/orders/refund.test.js": PASSES,
    "test/ship.test.js": PASSES,
  });
  const { code, summary } = await outcomeOf(dir);
  t.is(code, 1);
  t.deepEqual(summary, [
    "Failed. Repeat each one alone:",
    "",
    '  orders › pay › costs "5 $" or 100 %, at `most`',
    '    npx ava test/orders/pay.test.js --match "costs *5 * or 100 *, at *most*"',
    "",
    "  orders › pay › costs nothing",
    '    npx ava test/orders/pay.test.js --match "costs nothing"',
    "",
    "3 passed, 2 failed",
  ]);
  for (const command of summary.filter((line) => line.startsWith("    "))) {
    const { code: again, lines } = await run(dir, command.trim());
    t.is(again, 1);
    t.true(lines.includes("  1 test failed"), lines.join("\n"));
  }
});

/** A test that fails in its first run only. */
const slowAtFirst = (
  title: string,
): string => `import test from "ava"; import { existsSync, writeFileSync } from "node:fs";
test("${title}", (t) => { const ran = existsSync("${title}"); writeFileSync("${title}", ""); t.true(ran); });\n`;

test("a run passes if what failed passes alone, and says so", async (t) => {
  const files = { "test/pay.test.js": slowAtFirst("pays"), "test/ship.test.js": slowAtFirst("ships") };
  const { code, summary, repeated } = await outcomeOf(await project(t, files));
  t.is(summary.at(-1), "0 passed, 2 failed");
  for (const title of ["pay › pays", "ship › ships"]) t.true(repeated.includes(`Repeating ${title}`));
  t.regex(repeated.at(-1) ?? "", /^Passed: what failed beside other tests passed alone\./);
  t.is(code, 0);
});

test("a run fails if one of the tests that failed also fails alone", async (t) => {
  const fails = 'import test from "ava"; test("ships", (t) => t.fail());';
  const files = { "test/pay.test.js": slowAtFirst("pays"), "test/ship.test.js": fails };
  const { code, repeated } = await outcomeOf(await project(t, files));
  t.true(repeated.includes("Repeating ship › ships"));
  t.is(code, 1);
});

test("a run in which more than three tests failed is not repeated", async (t) => {
  const files = ["a", "b", "c", "d"].map((name) => [`test/${name}.test.js`, slowAtFirst(name)] as const);
  const { code, summary, repeated } = await outcomeOf(await project(t, Object.fromEntries(files)));
  t.is(summary.at(-1), "0 passed, 4 failed");
  t.deepEqual(repeated, []);
  t.is(code, 1);
});

test("a failed search for overlaps is not repeated, because the next one may miss the fault", async (t) => {
  const files = { "test/torture/long.test.js": slowAtFirst("plays"), "test/ship.test.js": PASSES };
  const { code, summary, repeated } = await outcomeOf(await project(t, files));
  t.is(summary.at(-1), "1 passed, 1 failed");
  t.deepEqual(repeated, []);
  t.is(code, 1);
});

test("a file that fails outside of its tests is named with a command that runs it", async (t) => {
  const dir = await project(t, {
    "test/hook.test.js": `import test from "ava"; test.before(() => { throw new Error("no server"); }); test("pays", (t) => t.pass());`,
    "test/throws.test.js": `${PASSES} test.after(() => { setTimeout(() => { throw new Error("late"); }); return new Promise((end) => { setTimeout(end, 600_000); }); });`,
    "test/ship.test.js": PASSES,
  });
  const { code, summary } = await outcomeOf(dir);
  t.is(code, 1);
  const commands = summary.filter((line) => line.startsWith("    ")).map((line) => line.trim());
  t.deepEqual(commands.toSorted(), ["npx ava test/hook.test.js", "npx ava test/throws.test.js"]);
  t.is(summary.at(-1), "2 passed, 2 failed");
});

test("a test that still runs when the run is interrupted is named", async (t) => {
  const hangs = `${PASSES.replace("test(", "test.serial(")} test("hangs", () => new Promise((end) => { setTimeout(end, 600_000); console.log("it hangs"); }));`;
  const dir = await project(t, { "test/hangs.test.js": hangs });
  const child = spawn(process.execPath, [QUIETLY], { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (text.includes("it hangs")) child.kill("SIGINT");
  });
  const [code] = (await once(child, "close")) as [number | null];
  t.is(code, 1);
  t.regex(output, /\n {2}hangs\n {4}npx ava --match "hangs"\n\n1 passed, 1 failed\n$/);
});
