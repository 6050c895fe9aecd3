import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { before, options, sets } from "../matrix/packages.json";

// The packages that tests install. test/matrix/packages.json has their exact versions. npm picks each of their own dependencies from the
// releases before the time in that file. The matrix installs all sets of a part before its tests begin. A test that runs alone installs its
// own.

/** All sets of packages that are installed together, by name. The packages of a set are written like the dependencies of a package.json. */
export const SETS: Readonly<Record<string, Readonly<Record<string, string>>>> = Object.assign(
  {},
  ...Object.values(sets),
);

type NamesIn<Groups> = { [Group in keyof Groups]: keyof Groups[Group] }[keyof Groups];

/** The name of a set. */
export type SetName = NamesIn<typeof sets>;

const STORE = join(tmpdir(), "lockweave-test-tools");
/** Whether `npm test` runs. It must not depend on a registry. */
const IS_FORBIDDEN = process.env["WITHOUT_INSTALLS"] !== undefined;
const ATTEMPTS = 3;
/** After each failed attempt, the next pause is longer by this. */
const PAUSE_MS = 2_000;

/** The suffix of directories that tests modify, so that two checkouts can run their tests at the same time. */
export const OF_THIS_CHECKOUT = digestOf(join(__dirname, "../.."));

/** Returns a short name for any text. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Returns the names of the packages in the set. */
export function packagesIn(set: SetName): readonly string[] {
  return Object.keys(dependenciesOf(set));
}

/** Returns the exact version of a package in the set. */
export function versionIn(set: SetName, name: string): string {
  const version = dependenciesOf(set)[name];
  if (version === undefined) throw new Error(`${name} is not in the set ${set}`);
  return version;
}

function dependenciesOf(set: string): Readonly<Record<string, string>> {
  const dependencies = SETS[set];
  if (dependencies === undefined) throw new Error(`test/matrix/packages.json has no set ${set}`);
  return dependencies;
}

/** Installs the set, once for all test runs on this machine. Returns its `node_modules`. */
export async function installed(set: SetName): Promise<string> {
  if (IS_FORBIDDEN) throw new Error(`Only a test of the matrix may install ${set}. Fix: use inMatrix()`);
  const dir = directoryOf(set);
  if (!existsSync(dir)) await appear(dir, (fresh) => install(set, fresh));
  return join(dir, "node_modules");
}

/** Returns the `node_modules` of a copy of the set that the tests of this checkout may change. */
export async function ownCopy(set: SetName): Promise<string> {
  const from = await installed(set);
  const dir = `${directoryOf(set)}-${OF_THIS_CHECKOUT}`;
  const copy = (fresh: string): Promise<void> =>
    cp(dirname(from), fresh, { recursive: true, verbatimSymlinks: true });
  if (!existsSync(dir)) await appear(dir, copy);
  return join(dir, "node_modules");
}

function directoryOf(set: SetName): string {
  const recipe = { before, dependencies: dependenciesOf(set), options: optionsOf(set) };
  return join(STORE, `${set}-${digestOf(JSON.stringify(recipe))}`);
}

function optionsOf(set: string): readonly string[] {
  return (options as Readonly<Record<string, readonly string[]>>)[set] ?? [];
}

/** Fills a directory. It appears only when it is complete, since another test may fill the same one. */
async function appear(dir: string, fill: (fresh: string) => Promise<void>): Promise<void> {
  await mkdir(STORE, { recursive: true });
  const fresh = await mkdtemp(join(STORE, "installing-"));
  await chmod(fresh, 0o755); // PostgreSQL runs as another user.
  try {
    await fill(fresh);
    await rename(fresh, dir);
  } catch (error) {
    await rm(fresh, { recursive: true });
    if (!existsSync(dir)) throw error;
  }
}

/** Prints deprecation notices. They are no failures, because they depend on the registry and not on Lockweave. */
async function install(set: SetName, dir: string): Promise<void> {
  const manifest = { private: true, dependencies: dependenciesOf(set) };
  await writeFile(join(dir, "package.json"), JSON.stringify(manifest, undefined, 2));
  const args = ["install", "--before", before, "--prefer-offline", "--no-audit", "--no-fund"];
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { stderr } = await promisify(execFile)("npm", [...args, ...optionsOf(set)], { cwd: dir });
      for (const notice of stderr.match(/^npm warn deprecated .*$/gm) ?? []) console.log(notice);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw new Error(`npm could not install the set ${set}`, { cause: error });
    }
    await pause(attempt * PAUSE_MS);
  }
}
