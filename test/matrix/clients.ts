import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { RedisClient } from "../../runtime/stores/redis/client";
import { assertClient } from "../../runtime/stores/redis/recognize-client";
import { installed } from "../hosts/installed";

// Checks that the error for a client of another package names that package, and runs the tests over clients that are not development
// dependencies, with the real packages.

const TESTS = [
  "test/stores/glide.test.ts",
  "test/stores/glide-cluster.test.ts",
  "test/faults/mixed-fleets.test.ts",
  "test/package/other-clients.test.ts",
];
/** Test files that play the same scenarios over each library. Only the tests over a library of this file run here. */
const SCENARIOS = [
  "test/stores/redis-slots.test.ts",
  "test/faults/cluster.test.ts",
  "test/faults/frozen-master.test.ts",
];
/** The same for tests of the matrix. */
const SCENARIOS_OF_MATRIX = ["test/stores/every-client.test.ts", "test/faults/lost-replies.test.ts"];
const REPOSITORY = join(__dirname, "../..");

type Make = (from: NodeJS.Require) => unknown;

interface Kind {
  /** The name in the error, or `undefined` if the client works as well as ioredis. */
  readonly name: string | undefined;
  readonly make: Make;
}

function madeBy(id: string, factory: string, options: object = {}): Make {
  return (from) => (from(id) as Record<string, (options: object) => unknown>)[factory]?.(options);
}

/** Creates an object of the class without its constructor, which would connect. */
function bare(id: string, className: string): Make {
  return (from) =>
    Object.create((from(id) as Record<string, { readonly prototype: object }>)[className]?.prototype ?? null);
}

const SENTINEL = { name: "locks", sentinelRootNodes: [{ host: "localhost", port: 26379 }] };

const KINDS: Readonly<Record<string, Kind>> = {
  "redis 6": { name: undefined, make: madeBy("redis", "createClient") },
  "redis 5": { name: undefined, make: madeBy("redis-5", "createClient") },
  "redis 6, a pool": { name: undefined, make: madeBy("redis", "createClientPool") },
  "redis 6, Sentinel": { name: undefined, make: madeBy("redis", "createSentinel", SENTINEL) },
  "redis 5, Sentinel": { name: undefined, make: madeBy("redis-5", "createSentinel", SENTINEL) },
  "redis 6, a cluster": { name: undefined, make: madeBy("redis", "createCluster", { rootNodes: [] }) },
  "redis 5, a cluster": { name: undefined, make: madeBy("redis-5", "createCluster", { rootNodes: [] }) },
  "redis 4": {
    name: "node-redis 4 or earlier (the package `redis`)",
    make: madeBy("redis-4", "createClient"),
  },
  GLIDE: { name: undefined, make: bare("@valkey/valkey-glide", "GlideClient") },
  "GLIDE, a cluster without its config": {
    name: "Valkey GLIDE without its config",
    make: bare("@valkey/valkey-glide", "GlideClusterClient"),
  },
  Upstash: {
    name: "@upstash/redis, which speaks HTTP",
    make: (from) => {
      const { Redis } = from("@upstash/redis") as { Redis: new (options: object) => unknown };
      return new Redis({ url: "https://localhost", token: "none" });
    },
  },
  iovalkey: {
    name: undefined,
    make: (from) => new (from("iovalkey") as new (options: object) => unknown)({ lazyConnect: true }),
  },
};

async function main(): Promise<void> {
  const dir = dirname(await installed("clients"));
  console.log(`The clients are in ${dir}`);
  const from = createRequire(join(dir, "package.json"));
  let failed = 0;
  for (const [what, { name, make }] of Object.entries(KINDS)) {
    const message = errorOf(make(from));
    const isNamed = name === undefined ? message === undefined : (message?.includes(`of ${name}`) ?? false);
    console.log(`${isNamed ? "✔" : "✘"} a client of ${what}${isNamed ? "" : `: ${message}`}`);
    if (!isNamed) failed += 1;
  }
  const env = { ...process.env, CLIENTS_FROM: dir, CLUSTER_ROUNDS: "2" };
  const ava = join(REPOSITORY, "node_modules/.bin/ava");
  const overGlide = ["--match", "over GLIDE*"];
  for (const [args, more] of [
    [TESTS, {}],
    [[...SCENARIOS, ...overGlide], {}],
    [[...SCENARIOS_OF_MATRIX, ...overGlide], { MATRIX: "1" }],
  ] as const) {
    const { status } = spawnSync(ava, args, { cwd: REPOSITORY, env: { ...env, ...more }, stdio: "inherit" });
    if (status !== 0) failed += 1;
  }
  process.exitCode = failed === 0 ? 0 : 1;
}

function errorOf(client: unknown): string | undefined {
  try {
    assertClient(client as RedisClient);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

void main();
