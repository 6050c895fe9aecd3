import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Installs the other libraries into `bench/node_modules` from the lock file, unless they are installed. */
export function installPeers(): void {
  if (Object.entries(peerVersions()).every(([name, version]) => installed(name) === version)) return;
  console.log("Installing the peers into bench/node_modules ...");
  const { status } = spawnSync("npm", ["ci", "--loglevel=error"], { cwd: __dirname, stdio: "inherit" });
  if (status !== 0) throw new Error("the peers could not be installed");
}

/** Returns the versions of the libraries that are compared, by name. */
export function peerVersions(): Record<string, string> {
  const manifest = JSON.parse(readFileSync(join(__dirname, "package.json"), "utf8")) as Manifest;
  return manifest.dependencies;
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Record<string, string>;
}

function installed(name: string): string | undefined {
  const file = join(__dirname, "node_modules", name, "package.json");
  if (!existsSync(file)) return undefined;
  return (JSON.parse(readFileSync(file, "utf8")) as Manifest).version.replace(/^v/, "");
}
