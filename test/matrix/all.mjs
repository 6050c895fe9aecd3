// npm run test:matrix, or some of its parts: npm run test:matrix -- peers servers
//
// Runs all parts, even after a failure. At the end it prints the result and the duration of each part.
import { spawnSync } from "node:child_process";

const script = (file) => ["node", "--require", "ts-node/register/transpile-only", `test/matrix/${file}.ts`];
const proof = (...args) => ["node", "test/proofs.mjs", ...args];

const ROUNDS = ["faults/cluster", "faults/quorum", "faults/sentinel", "simulation/quorum"];

/** The command of each part. */
const PARTS = {
  compilers: script("matrix"),
  clients: script("clients"),
  ioredis: script("ioredis"),
  peers: script("peers"),
  servers: script("servers"),
  simulate: proof("simulate", "3000"),
  explore: proof("explore", "--deviations", "2", "--schedules", "12000"),
  torture: proof("torture", "3"),
  hosts: script("hosts"),
  // The same setups each time. `npm run proof -- sweep` runs all or others.
  sweep: ["node", "--require", "ts-node/register/transpile-only", "test/sweep/sweep.ts", "72", "1"],
  // The NestJS starters are in `hosts`. The others take too long: npm run proof -- starters.
  starters: ["node", "--require", "ts-node/register/transpile-only", "test/starters/run.ts", "vite"],
  // Runs each scenario briefly. The figures mean nothing, but this detects a benchmark that no longer runs.
  benchmarks:
    `node --require ts-node/register/transpile-only bench/run.ts --quick --contestants raw,lockweave`.split(
      " ",
    ),
  rounds: ["npx", "ava", "--timeout", "10m", ...ROUNDS.map((name) => `test/${name}.test.ts`)],
};

/** The environment variables of each part. */
const ENVIRONMENTS = {
  rounds: { CLUSTER_ROUNDS: "4", QUORUM_ROUNDS: "3", SENTINEL_ROUNDS: "3", SEEDS: "50" },
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`No part ${unknown.join(", ")}. The parts are ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}

const results = [];
for (const [name, [command, ...args]] of Object.entries(PARTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.log(`\n# ${name}`);
  const startedAt = performance.now();
  const env = Object.assign({}, process.env, ENVIRONMENTS[name]);
  const { status } = spawnSync(command, args, { stdio: "inherit", env });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  if (status !== 0) process.exitCode = 1;
  results.push(`  ${status === 0 ? "✔" : "✘"} ${name} (${seconds} s)`);
}
console.log(`\n# The parts of the matrix\n${results.join("\n")}`);
