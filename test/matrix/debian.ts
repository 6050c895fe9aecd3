import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { debian } from "./packages.json";

// Unpacks Debian packages into directories of their own, so nothing on the machine changes.

const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";
const APT_PATIENCE_MS = 60_000;
const CACHE = join(tmpdir(), "lockweave-matrix", "servers");
const execute = promisify(execFile);

/** The name of a package in packages.json. */
export type DebianPackage = keyof typeof debian;

/**
 * Unpacks the version in packages.json, and other packages in the versions that its suite has.
 *
 * @returns the directory
 * @throws {Error} if it is not available
 */
export async function unpacked(what: DebianPackage, others: readonly string[]): Promise<string> {
  const { suite, name, version } = debian[what];
  const root = join(CACHE, `${name}-${version.replace(":", "-")}`);
  const isComplete = join(root, "complete");
  if (existsSync(isComplete)) return root;
  const available = await availableVersion(what);
  if (available !== version) {
    throw new Error(
      `${suite} has ${name} ${available} instead of ${version}. Fix: npm run test:matrix -- --raise`,
    );
  }
  await rm(root, { recursive: true, force: true });
  const downloads = join(root, "downloads");
  await mkdir(downloads, { recursive: true });
  const apt = await aptFor(suite);
  await execute("apt-get", [...apt, "download", name, ...others], {
    cwd: downloads,
    timeout: APT_PATIENCE_MS,
  });
  for (const file of await readdir(downloads)) {
    if (file.endsWith(".deb")) await execute("dpkg-deb", ["-x", join(downloads, file), root]);
  }
  await writeFile(isComplete, "");
  return root;
}

/** Returns the version of the package that its suite has now. */
export async function availableVersion(what: DebianPackage): Promise<string> {
  const { suite, name } = debian[what];
  const { stdout } = await execute("apt-cache", [
    ...(await aptFor(suite)),
    "show",
    "--no-all-versions",
    name,
  ]);
  const [, version] = /^Version: (.+)$/m.exec(stdout) ?? [];
  if (version === undefined) throw new Error(`${suite} has no ${name}`);
  return version;
}

/** Returns the Debian archive that this machine uses. */
async function archive(): Promise<string> {
  const { stdout } = await execute("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const found = stdout.split("\n").find((uri) => uri !== "" && !uri.includes("security"));
  if (found === undefined) throw new Error("this machine has no Debian archive");
  return found;
}

const updates = new Map<string, Promise<readonly string[]>>();

/** Returns options that make apt use only this suite, with its own state. */
function aptFor(suite: string): Promise<readonly string[]> {
  let options = updates.get(suite);
  if (options === undefined) updates.set(suite, (options = update(suite)));
  return options;
}

async function update(suite: string): Promise<readonly string[]> {
  if (!existsSync(KEYS)) throw new Error("this machine does not run Debian");
  const dir = join(CACHE, `apt-${suite}`);
  await mkdir(join(dir, "lists/partial"), { recursive: true });
  await mkdir(join(dir, "cache/archives/partial"), { recursive: true });
  await writeFile(join(dir, "status"), "");
  const list = join(dir, "sources.list");
  await writeFile(list, `deb [signed-by=${KEYS}] ${await archive()} ${suite} main\n`);
  const options = {
    "Dir::Etc::SourceList": list,
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State": dir,
    "Dir::State::Lists": join(dir, "lists"),
    "Dir::State::status": join(dir, "status"),
    "Dir::Cache": join(dir, "cache"),
    "Acquire::Languages": "none",
    "Acquire::Retries": "5",
    "Debug::NoLocking": "1",
  };
  const args = Object.entries(options).flatMap(([option, value]) => ["-o", `${option}=${value}`]);
  await execute("apt-get", ["-q", ...args, "update"], { timeout: APT_PATIENCE_MS });
  return ["-q", ...args];
}
