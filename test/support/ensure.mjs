// The tests need real programs. This installs the missing ones as root with apt. On other machines it prints what to
// install.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** The packages of programs that need another one than that of their name. */
const PACKAGES = { postgres: ["postgresql"], gcc: ["gcc", "libc6-dev"] };
/** Debian keeps the programs of each version of PostgreSQL in a folder of its own, outside of the PATH. */
const POSTGRES_VERSIONS = "/usr/lib/postgresql";

const missing = process.argv
  .slice(2)
  .filter((program) => !isInstalled(program))
  .flatMap((program) => PACKAGES[program] ?? [program]);
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
    aptGet("update");
    if (missing.some((name) => PACKAGES.postgres.includes(name)))
      withoutMainCluster(() => install("postgresql-common"));
    install(...missing);
  });
}

function install(...packages) {
  aptGet("install", "--yes", "--no-install-recommends", ...packages);
}

/** Downloads again what a busy mirror does not send. */
function aptGet(...args) {
  run("apt-get", "-qq", "--option", "Acquire::Retries=5", ...args);
}

function isInstalled(program) {
  if (program !== "postgres" || isOnPath(program)) return isOnPath(program);
  return (
    existsSync(POSTGRES_VERSIONS) &&
    readdirSync(POSTGRES_VERSIONS).some((version) =>
      existsSync(`${POSTGRES_VERSIONS}/${version}/bin/postgres`),
    )
  );
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

/** Keeps the server's package from creating a database of its own. The setting is in a package that comes first. */
function withoutMainCluster(installSettings) {
  installSettings();
  const settings = "/etc/postgresql-common/createcluster.conf";
  const before = readFileSync(settings, "utf8");
  writeFileSync(settings, before.replace(/^#?create_main_cluster.*$/m, "create_main_cluster = false"));
}

/** Keeps the packages from starting servers on their usual ports. Debian runs this file first, and 101 means no. */
function withoutStartingServices(installAll) {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  if (isOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    installAll();
  } catch (error) {
    console.error(error.message);
  } finally {
    if (isOurs) rmSync(policy);
  }
}
