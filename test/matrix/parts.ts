import { installPeers } from "../../bench/peers";
import { fillCacheOfYarn } from "../hosts/yarn";
import type { sets } from "./packages.json";

type Command = readonly [program: string, ...args: string[]];

/** A part of the matrix. */
export interface Part {
  /** @param minutes how long it should last, if the command line says so */
  readonly command: Command | ((minutes?: string) => Command);
  /** The groups of packages.json that are installed before it begins. */
  readonly installs?: readonly (keyof typeof sets)[];
  /** Obtains what else it needs from the network. */
  readonly prepare?: () => void | Promise<void>;
  /** The programs that it needs beside those of `npm test`. */
  readonly programs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether no other part runs meanwhile, because its tests wait for servers that fail and come back. */
  readonly isAlone?: true;
  /** Whether it may use the registry while it runs. */
  readonly isOnline?: true;
}

const typescript = (file: string, ...args: readonly string[]): Command => [
  process.execPath,
  "--require",
  "ts-node/register/transpile-only",
  file,
  ...args,
];
const script = (name: string): Command => typescript(`test/matrix/${name}.ts`);
const proof = (...args: readonly string[]): Command => [process.execPath, "test/proofs.mjs", ...args];

const ROUNDS = ["cluster", "postgres-failover", "quorum", "sentinel"].map(
  (name) => `test/faults/${name}.test.ts`,
);

/** The parts by name. The longest are first, so that no core waits for them at the end. */
export const PARTS: Readonly<Record<string, Part>> = {
  hosts: {
    command: script("hosts"),
    installs: ["lockweave", "hosts", "bundlers", "node-24", "nodes", "runtimes", "ioredis"],
    prepare: fillCacheOfYarn,
    programs: ["chromium"],
  },
  explore: {
    command: (minutes) => {
      const limit = minutes === undefined ? ["--schedules", "5000"] : ["--minutes", minutes];
      return proof("explore", "--deviations", "2", ...limit);
    },
  },
  runtimes: { command: script("runtimes"), installs: ["lockweave", "runtimes"] },
  rounds: {
    command: ["npx", "ava", "--timeout", "30m", "--concurrency", "2", ...ROUNDS],
    env: { CLUSTER_ROUNDS: "3", QUORUM_ROUNDS: "3", POSTGRES_ROUNDS: "2", SENTINEL_ROUNDS: "2" },
    isAlone: true,
  },
  torture: {
    command: (minutes = "0") => proof("torture", minutes, "--on", "all"),
    programs: process.platform === "linux" ? ["faketime"] : [],
  },
  defects: {
    command: ["npx", "ava", "--timeout", "30m", "test/torture/defects.test.ts"],
    programs: process.platform === "linux" ? ["faketime"] : [],
  },
  // Runs each scenario briefly. The figures mean nothing, but this detects a benchmark that no longer runs.
  benchmarks: {
    command: typescript("bench/run.ts", "--quick", "--contestants", "raw,lockweave"),
    prepare: installPeers,
  },
  compilers: { command: script("compilers"), installs: ["lockweave", "compilers", "node-24", "nodes"] },
  ioredis: { command: script("ioredis"), installs: ["ioredis"] },
  servers: { command: script("servers"), installs: ["servers"], isOnline: true },
  // The same setups each time. `npm run proof -- sweep` runs all or others.
  sweep: { command: typescript("test/sweep/sweep.ts", "72", "1"), installs: ["bundlers", "node-24"] },
  // The NestJS starters are in `hosts`. The others take too long: npm run proof -- starters.
  starters: { command: typescript("test/starters/run.ts", "vite"), installs: ["node-24"], isOnline: true },
  simulate: { command: proof("simulate", "2000") },
  quorum: {
    command: ["npx", "ava", "--timeout", "30m", "test/simulation/quorum.test.ts"],
    env: { SEEDS: "50" },
  },
  peers: { command: script("peers"), prepare: installPeers },
  clients: { command: script("clients"), installs: ["clients"] },
  spec: { command: proof("spec"), programs: ["spin", "gcc"] },
  traces: {
    command: ["npx", "ava", "--timeout", "30m", "test/spec/traces.test.ts"],
    programs: ["spin", "gcc"],
  },
};
