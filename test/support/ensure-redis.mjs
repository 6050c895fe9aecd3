// The tests run against a real redis-server. Where there is none, and this is a machine to build on (root, with
// apt), it is installed; elsewhere one line says what to install.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";

if (!isOnPath("redis-server")) {
  if (process.getuid?.() !== 0 || !isOnPath("apt-get")) {
    console.error(
      "The tests need redis-server on the PATH: `sudo apt-get install redis-server`, `brew install redis`, or your system's own package.",
    );
    process.exit(1);
  }
  console.log("redis-server is not installed: installing Debian's package redis-server for the tests");
  withoutStartingServices(() => {
    run("apt-get", "-qq", "update");
    run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "redis-server");
  });
}

function isOnPath(program) {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

function run(program, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8",
  });
  if (status === 0) return;
  console.error(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`);
  process.exitCode = 1;
  throw new Error("redis-server could not be installed");
}

/** The package would start a server on port 6379, for good. Debian asks this file first; 101 means no. */
function withoutStartingServices(install) {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  if (isOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    install();
  } catch (error) {
    console.error(error.message);
  } finally {
    if (isOurs) rmSync(policy);
  }
}
