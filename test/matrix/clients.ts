import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { assertClient, type RedisClient } from "../../runtime/stores/redis/client";

// Checks that the error for a client of another package names that package. npm installs the real packages.

const PACKAGES = [
  "redis@6",
  "redis-4@npm:redis@4",
  "@valkey/valkey-glide@2",
  "@upstash/redis@1",
  "iovalkey@0",
];

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

const NODE_REDIS = "node-redis (the package `redis`)";

const KINDS: Readonly<Record<string, Kind>> = {
  "redis 6": { name: NODE_REDIS, make: madeBy("redis", "createClient") },
  "redis 6, a pool": { name: NODE_REDIS, make: madeBy("redis", "createClientPool") },
  "redis 6, a cluster": { name: NODE_REDIS, make: madeBy("redis", "createCluster", { rootNodes: [] }) },
  "redis 4": { name: NODE_REDIS, make: madeBy("redis-4", "createClient") },
  GLIDE: { name: "Valkey GLIDE", make: bare("@valkey/valkey-glide", "GlideClient") },
  "GLIDE, a cluster": { name: "Valkey GLIDE", make: bare("@valkey/valkey-glide", "GlideClusterClient") },
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
  const dir = join(tmpdir(), "lockweave-matrix", "clients");
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, "package.json"), "{}");
  const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", ...PACKAGES];
  await promisify(execFile)("npm", args, { cwd: dir });
  const from = createRequire(join(dir, "package.json"));
  let failed = 0;
  for (const [what, { name, make }] of Object.entries(KINDS)) {
    const message = errorOf(make(from));
    const isNamed = name === undefined ? message === undefined : (message?.includes(`of ${name}. `) ?? false);
    console.log(`${isNamed ? "✔" : "✘"} a client of ${what}${isNamed ? "" : `: ${message}`}`);
    if (!isNamed) failed += 1;
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
