// npm run test:matrix, or some of its parts: npm run test:matrix -- peers servers
//
// Runs two parts at once, because most parts wait often or use one core. Runs all parts, even after a failure. Each line begins with the name
// of its part. The end of the output is the result and the duration of each part. Before that, it repeats what matters of the last lines of
// each part that failed: a CI service may show only the end of the output.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const script = (file) => ["node", "--require", "ts-node/register/transpile-only", `test/matrix/${file}.ts`];
const proof = (...args) => ["node", "test/proofs.mjs", ...args];

const ROUNDS = [
  "faults/cluster",
  "faults/postgres-failover",
  "faults/quorum",
  "faults/sentinel",
  "simulation/quorum",
];

/** The command of each part. The longest are first, so that no core waits for them at the end. */
const PARTS = {
  hosts: script("hosts"),
  explore: proof("explore", "--deviations", "2", "--schedules", "5000"),
  runtimes: script("runtimes"),
  rounds: [
    "npx",
    "ava",
    "--timeout",
    "10m",
    "--concurrency",
    "3",
    ...ROUNDS.map((name) => `test/${name}.test.ts`),
  ],
  torture: proof("torture", "0", "--on", "all"),
  // Runs each scenario briefly. The figures mean nothing, but this detects a benchmark that no longer runs.
  benchmarks:
    `node --require ts-node/register/transpile-only bench/run.ts --quick --contestants raw,lockweave`.split(
      " ",
    ),
  compilers: script("matrix"),
  ioredis: script("ioredis"),
  servers: script("servers"),
  // The same setups each time. `npm run proof -- sweep` runs all or others.
  sweep: ["node", "--require", "ts-node/register/transpile-only", "test/sweep/sweep.ts", "72", "1"],
  // The NestJS starters are in `hosts`. The others take too long: npm run proof -- starters.
  starters: ["node", "--require", "ts-node/register/transpile-only", "test/starters/run.ts", "vite"],
  simulate: proof("simulate", "2000"),
  peers: script("peers"),
  clients: script("clients"),
  spec: proof("spec"),
};

/** The environment variables of each part. */
const ENVIRONMENTS = {
  rounds: {
    CLUSTER_ROUNDS: "3",
    QUORUM_ROUNDS: "3",
    POSTGRES_ROUNDS: "2",
    SENTINEL_ROUNDS: "2",
    SEEDS: "50",
  },
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`No part ${unknown.join(", ")}. The parts are ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}

/** More would make tests on a machine with two cores too slow for the times that they wait for Redis. */
const AT_ONCE = 2;

/** How many lines of a failed part the end of the output repeats, without those about tests that passed or were skipped. */
const REPEATED_LINES = 60;
const UNREMARKABLE = /^\s*(?:$|✔ |- \[skip\] |ℹ )/;

const parts = Object.keys(PARTS).filter((name) => names.length === 0 || names.includes(name));
const waiting = [...parts];
const results = new Map();
const repeated = [];
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await runPart(name);
  }),
);
console.log(
  [...repeated, "\n# The parts of the matrix", ...parts.map((name) => results.get(name))].join("\n"),
);

async function runPart(name) {
  const startedAt = performance.now();
  const lastLines = [];
  const isPassed = await run(name, (line) => {
    if (UNREMARKABLE.test(line)) return;
    lastLines.push(line);
    if (lastLines.length > REPEATED_LINES) lastLines.shift();
  });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const result = `  ${isPassed ? "✔" : "✘"} ${name} (${seconds} s)`;
  console.log(result);
  results.set(name, result);
  if (isPassed) return;
  process.exitCode = 1;
  repeated.push(`\n# The end of ${name}`, ...lastLines);
}

/** Runs the part, and prints its lines with its name. Returns whether it succeeded. */
async function run(name, onLine) {
  const [command, ...args] = PARTS[name];
  const env = Object.assign({}, process.env, ENVIRONMENTS[name]);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    createInterface({ input: from }).on("line", (line) => {
      to.write(`${name}: ${line}\n`);
      onLine(line);
    });
  }
  const [code] = await once(child, "close");
  return code === 0;
}
