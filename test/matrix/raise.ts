import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { availableVersion, type DebianPackage } from "./debian";
import type packages from "./packages.json";

const FILE = join(__dirname, "packages.json");
/** How many questions to the registry run at once. */
const AT_ONCE = 8;

/** A dependency of a set, which may be an alias such as `npm:redis@4.7.1`. */
interface Dependency {
  readonly set: string;
  readonly package: string;
  readonly version: string;
  raiseTo(version: string): void;
}

/**
 * Raises the versions in packages.json to the newest compatible releases, and prints what changed. Leaves what `fixed` lists. Only prints other
 * new releases, because tests may need changes for them. Each Debian server keeps the version in its name.
 */
export async function raise(): Promise<void> {
  const file = JSON.parse(await readFile(FILE, "utf8")) as typeof packages;
  const dependencies = dependenciesIn(file).filter(
    ({ package: name, version }) => !file.fixed.includes(`${name}@${version}`),
  );
  const releases = await releasesOf([...new Set(dependencies.map(({ package: name }) => name))]);
  const others = new Set<string>();
  for (const { set, package: name, version, raiseTo } of dependencies) {
    const known = releases.get(name) ?? [];
    const newest = known.at(-1);
    if (newest !== undefined && lineOf(newest) !== lineOf(version))
      others.add(`  ${name} ${version} → ${newest}`);
    const raised = known.findLast((release) => lineOf(release) === lineOf(version));
    if (raised === undefined || raised === version) continue;
    raiseTo(raised);
    console.log(`  ${set}: ${name} ${version} → ${raised}`);
  }
  for (const [what, server] of Object.entries(file.debian)) {
    const { name, version } = server;
    try {
      const available = await availableVersion(what as DebianPackage);
      if (available === version) continue;
      const isSameLine = available.replace(/^\d+:/, "").startsWith(`${what.split(" ")[1] ?? ""}.`);
      if (isSameLine) {
        server.version = available;
        console.log(`  ${what}: ${name} ${version} → ${available}`);
      } else others.add(`  ${what}: ${name} ${version} → ${available}`);
    } catch (error) {
      others.add(`  ${what}: ${(error as Error).message}`);
    }
  }
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  console.log(`  the dependencies of these: as of ${file.before} → ${now}`);
  await writeFile(FILE, `${JSON.stringify({ ...file, before: now }, undefined, 2)}\n`);
  await promisify(execFile)("npx", ["prettier", "--write", FILE]);
  if (others.size === 0) return;
  console.log(
    [
      "\nNot raised, because it may be incompatible or is not available here:",
      ...[...others].toSorted(),
    ].join("\n"),
  );
}

function dependenciesIn({ sets }: typeof packages): readonly Dependency[] {
  return Object.values(sets).flatMap((group) =>
    Object.entries(group as Record<string, Record<string, string>>).flatMap(([set, dependencies]) =>
      Object.entries(dependencies).map(([name, spec]) => {
        const [prefix = "", real = name] = /^npm:(.+)@/.exec(spec) ?? [];
        return {
          set,
          package: real,
          version: spec.slice(prefix.length),
          raiseTo: (version: string) => void (dependencies[name] = prefix + version),
        };
      }),
    ),
  );
}

/** Returns the part of the version that all compatible releases share. */
function lineOf(version: string): string | undefined {
  return /^0\.\d+|^\d+/.exec(version)?.[0];
}

/** Returns the releases of each package, the newest last. Prereleases do not count. */
async function releasesOf(names: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  const waiting = [...names];
  const work = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const { stdout } = await promisify(execFile)("npm", ["view", name, "versions", "--json"]);
      const versions = [JSON.parse(stdout) as string | string[]].flat();
      found.set(name, versions.filter((version) => /^\d+\.\d+\.\d+$/.test(version)).toSorted(byVersion));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

function byVersion(one: string, other: string): number {
  const [left = [], right = []] = [one, other].map((version) => version.split(".").map(Number));
  const index = left.findIndex((part, place) => part !== right[place]);
  return index === -1 ? 0 : (left[index] ?? 0) - (right[index] ?? 0);
}
