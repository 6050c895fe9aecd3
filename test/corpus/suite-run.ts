import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import ts from "typescript";
import { weave } from "../../transformer/weave/weave";
import { REPOSITORY, sourcesIn } from "./packages";
import { differencesOf, outcomesIn, type Outcomes, type Report } from "./suite-outcomes";
import { delayAll } from "./delay-all";
import { tagAll } from "./tag-all";

/** A third-party project, and how to run its tests. */
export interface Project {
  readonly name: string;
  readonly version: string;
  /** Puts the project into an empty folder. */
  readonly download: (folder: string) => void;
  /** Packages that its tests need besides its own dependencies. */
  readonly also?: readonly string[];
  /** The folder whose TypeScript gets tags, except for tests, or an expression for the paths of the files that get tags. */
  readonly sources: string | RegExp;
  /** Files that get no tags. A comment says why. */
  readonly untagged?: RegExp;
  /** Files that are written before the tests run. */
  readonly files?: Readonly<Record<string, string>>;
  readonly report: Report;
  /** The commands that run the tests without and with locks. `{report}` is the file of the report, or the report is the output. */
  readonly control: readonly string[];
  readonly woven: readonly string[];
  /** The commands that compile it before, if its tests run the output of a compiler. */
  readonly build?: { readonly control: readonly string[]; readonly woven: readonly string[] };
  readonly environment?: Readonly<Record<string, string>>;
  /** Attributes of the tags, one round of the tests for each. */
  readonly rounds?: readonly string[];
  /** Tests whose outcome is known to differ. A comment says why. */
  readonly known?: readonly (string | RegExp)[];
}

interface Result {
  readonly woven: number;
  readonly tests: number;
  /** The tests that fail without locks, too. */
  readonly failing: number;
  readonly grants: readonly string[];
  readonly differences: ReadonlyMap<string, string>;
  /** The tests that depend on the tick in which a body begins or ends. */
  readonly late: ReadonlySet<string>;
  readonly isKnown: (title: string) => boolean;
}

const CACHE = path.join(tmpdir(), "lockweave-corpus-suites");

/** Each call has its own key, so that no call waits for another. */
export const OWN_KEY = 'key="corpus:${globalThis.crypto.randomUUID()}"';

const ROUNDS = [OWN_KEY, `${OWN_KEY} reentrant=true`];

/** Entries in the results that are not tests. */
const NO_TEST = /\((?:the file|exit code)\)$/;

/** The set-up file of the tests with locks. It writes a line for each lock, which survives when a runner kills its workers. */
const SET_UP = `
if (!grants.hasSubscribers) {
  const file = openSync(process.env.CORPUS_GRANTS, "a");
  subscribe("lockweave:grant", ({ site }) => writeSync(file, site + "\\n"));
}
configure({ store: memoryStore() });
`;

const SET_UP_FILES: Readonly<Record<string, string>> = {
  "corpus-set-up.mjs": `
import { channel, subscribe } from "node:diagnostics_channel";
import { openSync, writeSync } from "node:fs";
import { configure, memoryStore } from "lockweave";
const grants = channel("lockweave:grant");
${SET_UP}`,
  "corpus-set-up.js": `
const { channel, subscribe } = require("node:diagnostics_channel");
const { openSync, writeSync } = require("node:fs");
const { configure, memoryStore } = require("lockweave");
const grants = channel("lockweave:grant");
${SET_UP}`,
};

/** Runs the tests of each project with and without locks. Returns the number of unknown differences. */
export function runSuites(projects: readonly Project[], wanted: readonly string[]): number {
  const lockweave = pack();
  let failed = 0;
  for (const project of projects.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const folder = prepare(project, lockweave);
    for (const attributes of project.rounds ?? ROUNDS) failed += report(project, folder, attributes);
  }
  return failed;
}

function report(project: Project, folder: string, attributes: string): number {
  const started = performance.now();
  console.log(`${project.name}@${project.version} ${attributes}`);
  const { woven, tests, failing, grants, differences, late, isKnown } = compare(project, folder, attributes);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const called = new Set(grants).size;
  console.log(
    `  ${woven} functions woven, ${tests} tests (${failing} fail without locks), ${grants.length} locks at ${called} sites, ${seconds} s`,
  );
  let failed = 0;
  for (const [title, difference] of differences) {
    const kind = isKnown(title) ? "known" : late.has(title) ? "late" : "DIFFERENT";
    console.log(`  ${kind}: ${title}: ${difference}`);
    if (kind === "DIFFERENT") failed += 1;
  }
  if (woven > 0 && grants.length > 0) return failed;
  console.log("  The tests acquired no lock, so they prove nothing.");
  return failed + 1;
}

function pack(): string {
  const folder = path.join(CACHE, "lockweave");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const file = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: REPOSITORY,
    encoding: "utf8",
  });
  return path.join(folder, file.trim());
}

/** Returns the folder of the project, with its dependencies and with Lockweave. */
function prepare(project: Project, lockweave: string): string {
  const parent = path.join(CACHE, `${project.name}@${project.version}`.replaceAll("/", "+"));
  const folder = path.join(parent, "project");
  const pristine = pristineOf(folder);
  const isReady = path.join(parent, "ready");
  if (!existsSync(isReady)) {
    rmSync(parent, { recursive: true, force: true });
    mkdirSync(pristine, { recursive: true });
    project.download(pristine);
    cpSync(pristine, folder, { recursive: true });
    npmInstall(folder, project.also ?? []);
    writeFileSync(isReady, "");
  }
  npmInstall(folder, ["--no-save", lockweave]);
  const files = { ...SET_UP_FILES, ...project.files };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return folder;
}

/** The copy of the project that stays as it was downloaded. */
function pristineOf(folder: string): string {
  return path.join(folder, "../pristine");
}

function npmInstall(folder: string, words: readonly string[]): void {
  const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps"];
  execFileSync("npm", ["install", ...options, ...words], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

function compare(project: Project, folder: string, attributes: string): Result {
  const woven = writeSources(project, folder, (file, text) => tagged(file, text, attributes));
  const grantsFile = path.join(folder, "corpus-grants");
  writeFileSync(grantsFile, "");
  const before = runControl(project, folder);
  if (project.build !== undefined) build(folder, project.build.woven);
  const after = run(project, folder, project.woven, { CORPUS_GRANTS: grantsFile });
  const differences = new Map(differencesOf(before, after));
  if (differences.size > 0) {
    // A stall of the process may end a timer of a test. So only a difference that comes twice counts.
    const again = run(project, folder, project.woven, { CORPUS_GRANTS: `${grantsFile}-again` });
    const twice = new Map(differencesOf(before, again));
    for (const title of differences.keys()) if (!twice.has(title)) differences.delete(title);
  }
  const late = new Set(differences.size > 0 ? lateOnes(project, folder, after) : []);
  // A test that also differs between two runs without locks says nothing about them.
  for (let again = 0; again < 2 && [...differences.keys()].some((title) => !late.has(title)); again += 1)
    for (const [title] of differencesOf(before, runControl(project, folder))) differences.delete(title);
  const outcomes = [...before].filter(([title]) => !NO_TEST.test(title)).map(([, outcome]) => outcome);
  const { known = [] } = project;
  return {
    woven,
    tests: outcomes.length,
    failing: outcomes.filter((outcome) => /^failed|^not ok$/.test(outcome)).length,
    grants: readFileSync(grantsFile, "utf8").trim().split("\n").filter(Boolean),
    differences,
    late,
    isKnown: (title) =>
      known.some((one) => (typeof one === "string" ? title.includes(one) : one.test(title))),
  };
}

/** Returns the tests that have the same outcome if a delay replaces the lock. */
function lateOnes(project: Project, folder: string, after: Outcomes): readonly string[] {
  const sources = sourcesOf(project, folder).map((file) => [file, readFileSync(file, "utf8")] as const);
  writeSources(project, folder, (file, text) => ({ text: delayAll(file, text), count: 0 }));
  const delayed = runControl(project, folder);
  for (const [file, text] of sources) writeFileSync(file, text);
  return [...after].filter(([title, outcome]) => delayed.get(title) === outcome).map(([title]) => title);
}

interface Rewritten {
  readonly text: string;
  readonly count: number;
}

function tagged(file: string, text: string, attributes: string): Rewritten {
  const result = tagAll(file, text, attributes);
  const sites = weave(file, result.text, { ts, module: "esm" })?.sites.length ?? 0;
  if (sites === result.count) return result;
  throw new Error(`${file}: ${result.count} tags, but ${sites} functions woven`);
}

function sourcesOf({ sources, untagged }: Project, folder: string): readonly string[] {
  const pristine = pristineOf(folder);
  const names =
    typeof sources === "string"
      ? sourcesIn(path.join(pristine, sources)).map((file) => path.relative(pristine, file))
      : readdirSync(pristine, { recursive: true, encoding: "utf8" }).filter((name) => sources.test(name));
  return names.filter((name) => untagged?.test(name) !== true).map((name) => path.join(folder, name));
}

/** Rewrites the sources, and returns the number of changed functions. */
function writeSources(
  project: Project,
  folder: string,
  rewrite: (file: string, text: string) => Rewritten,
): number {
  let total = 0;
  for (const file of sourcesOf(project, folder)) {
    const original = readFileSync(path.join(pristineOf(folder), path.relative(folder, file)), "utf8");
    const { text, count } = rewrite(file, original);
    writeFileSync(file, text);
    total += count;
  }
  return total;
}

function runControl(project: Project, folder: string): Outcomes {
  if (project.build !== undefined) build(folder, project.build.control);
  return run(project, folder, project.control);
}

function build(folder: string, [program = "", ...options]: readonly string[]): void {
  execFileSync(program, options, { cwd: folder, env: environmentOf(folder), stdio: "inherit" });
}

/** The variables under which the programs of the project run. */
function environmentOf(folder: string): NodeJS.ProcessEnv {
  const { PATH = "" } = process.env;
  return { ...process.env, PATH: `${path.join(folder, "node_modules/.bin")}${path.delimiter}${PATH}` };
}

function run(
  { report: format, environment }: Project,
  folder: string,
  command: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Outcomes {
  const reportFile = path.join(folder, "corpus-report");
  rmSync(reportFile, { force: true });
  const [program = "", ...options] = command.map((word) => word.replace("{report}", reportFile));
  const { status, stdout, stderr, error } = spawnSync(program, options, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 2 ** 30,
    timeout: 600_000,
    env: { ...environmentOf(folder), ...environment, ...variables },
  });
  if (error !== undefined) throw error;
  writeFileSync(path.join(folder, "corpus-output"), `${stdout}${stderr}`);
  if (!command.some((word) => word.includes("{report}"))) writeFileSync(reportFile, stdout);
  return new Map([...outcomesIn(reportFile, format, folder), ["(exit code)", status === 0 ? "0" : "not 0"]]);
}
