// npm run proof -- <name> [arguments]
import { runByName } from "../build/by-name.mjs";

const LARGE_HEAP = ["--max-old-space-size=8000"];

await runByName("proof", {
  simulate: {
    file: "test/simulation/many.ts",
    about: "Simulate fleets of processes on Redis and PostgreSQL in virtual time, from 100,000 seeds",
  },
  explore: {
    file: "test/simulation/explorer/many.ts",
    about: "Run all schedules of small worlds with up to two deviations from the plain order",
  },
  torture: {
    file: "test/torture/torture.ts",
    about: "Let real processes contend for locks on real servers of each topology, under faults",
    // On other systems, all processes change their own clock.
    programs: [
      "redis-server",
      "postgres",
      "pgbouncer",
      ...(process.platform === "linux" ? ["faketime"] : []),
    ],
  },
  fuzz: {
    file: "test/fuzz/many.ts",
    about: "Compare random function bodies with and without the weave",
  },
  sweep: {
    file: "test/sweep/sweep.ts",
    about: "Build and run combinations of hosts, plugins, caches, and packages. None may run unlocked",
    needsBuild: true,
  },
  mutate: {
    file: "test/mutation/mutate.ts",
    about: "Change the code in small ways, and report changes that no test notices",
    needsBuild: true,
  },
  corpus: {
    file: "test/corpus/corpus.ts",
    about: "Weave every async function of npm packages that ship TypeScript, and compare types",
    needsBuild: true,
    node: LARGE_HEAP,
  },
  "corpus-findings": {
    file: "test/corpus/findings.ts",
    about: "Lock each of these functions, then let some need a lock, and print what the analysis finds",
    node: LARGE_HEAP,
  },
  "corpus-suites": {
    file: "test/corpus/suites.ts",
    about: "Lock each function of projects with tests of their own, and compare the test results",
    needsBuild: true,
  },
  starters: {
    file: "test/starters/run.ts",
    about: "Create projects with npm starters, set them up by `init`, and run them on Redis",
    needsBuild: true,
    programs: ["redis-server"],
  },
  spec: {
    file: "test/spec/run.ts",
    about:
      "Let SPIN search all states of models of the protocol, and find an error in each model that lacks a rule",
    programs: ["spin", "gcc"],
  },
  "other-servers": {
    file: "test/matrix/servers.ts",
    about: "Run the tests of wake-ups, clusters, and faults on Valkey, Redict, and other versions of Redis",
    args: ["--all"],
  },
});
