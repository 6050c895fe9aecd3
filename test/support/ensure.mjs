// The tests need real programs. This installs the missing ones as root with apt. On other machines it prints what to
// install.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";

const missing = process.argv.slice(2).filter((program) => !isOnPath(program));
if (missing.length > 0) {
  const names = missing.join(" and ");
  if (process.getuid?.() !== 0 || !isOnPath("apt-get")) {
    console.error(
      `The tests need ${names} on the PATH: \`sudo apt-get install ${missing.join(" ")}\`, \`brew install ${missing.join(" ")}\`, or your system's own package.`,
    );
    process.exit(1);
  }
  console.log(`Installing for the tests, as Debian packages: ${names}`);
  withoutStartingServices(() => {
    run("apt-get", "-qq", "update");
    run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", ...missing);
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
  throw new Error(`${args.at(-1)} could not be installed`);
}

/** Keeps the package from starting a redis-server on port 6379. Debian runs this file first, and 101 means no. */
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
