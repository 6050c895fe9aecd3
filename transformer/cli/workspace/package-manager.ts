import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "../../terminal/usage-error";

export interface PackageManager {
  readonly name: string;
  readonly locks: readonly string[];
  readonly install: readonly string[];
  readonly installDev: readonly string[];
  /** The words before the name of a program of an installed package. */
  readonly runner: readonly string[];
}

const NPM: PackageManager = {
  name: "npm",
  locks: ["package-lock.json"],
  install: ["npm", "install"],
  installDev: ["npm", "install", "--save-dev"],
  runner: ["npx"],
};

const adding = (
  name: string,
  dev: string,
  runner: readonly string[],
  ...locks: string[]
): PackageManager => ({
  name,
  locks,
  install: [name, "add"],
  installDev: [name, "add", dev],
  runner,
});

const MANAGERS: readonly PackageManager[] = [
  adding("pnpm", "--save-dev", ["pnpm", "exec"], "pnpm-lock.yaml"),
  adding("yarn", "--dev", ["yarn"], "yarn.lock"),
  adding("bun", "--dev", ["bunx"], "bun.lock", "bun.lockb"),
  NPM,
];

/** Returns the package manager that a package.json names, or whose lock file is there, in this directory or the nearest one above. */
export function packageManagerFor(directory: string): PackageManager {
  for (let dir = directory; ; dir = dirname(dir)) {
    const { packageManager } = manifestIn(dir);
    const found =
      MANAGERS.find(({ name }) => packageManager?.startsWith(`${name}@`)) ??
      MANAGERS.find(({ locks }) => locks.some((lock) => existsSync(join(dir, lock))));
    if (found !== undefined) return found;
    if (dir === dirname(dir)) return NPM;
  }
}

/** Returns the command line that runs a program of an installed package in this directory. */
export function commandLine(directory: string, ...words: readonly string[]): string {
  return [...packageManagerFor(directory).runner, ...words].join(" ");
}

/**
 * Checks that Yarn runs this process if the project uses Yarn Plug'n'Play. Without Yarn's loader, as with `npx`, no package of the project
 * would be found.
 *
 * @param args the arguments of the command line
 * @throws {UsageError} if another program runs this process
 */
export function assertRunByYarn(directory: string, args: readonly string[]): void {
  if ("pnp" in process.versions || packageManagerFor(directory).name !== "yarn") return;
  if (!isBelow(directory, ".pnp.cjs")) return;
  const { dependencies = {}, devDependencies = {} } = manifestIn(directory);
  const isInstalled = "lockweave" in { ...dependencies, ...devDependencies };
  const install = isInstalled ? "" : "`yarn add lockweave ioredis`, and then ";
  throw new UsageError(
    `This project uses Yarn Plug'n'Play, so only Yarn finds its packages. Fix: run ${install}\`yarn lockweave ${args.join(" ")}\`.`,
  );
}

function isBelow(directory: string, file: string): boolean {
  for (let dir = directory; ; dir = dirname(dir)) {
    if (existsSync(join(dir, file))) return true;
    if (dir === dirname(dir)) return false;
  }
}

interface Manifest {
  readonly packageManager?: string;
  readonly dependencies?: object;
  readonly devDependencies?: object;
}

/** Returns the package.json, or `{}` if there is none that can be read. */
function manifestIn(dir: string): Manifest {
  try {
    return Object(JSON.parse(readFileSync(join(dir, "package.json"), "utf8"))) as Manifest;
  } catch {
    return {};
  }
}
