import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import type { LibraryName } from "../../runtime/stores/redis/address";
import { loadLibrary } from "../../runtime/stores/redis/load-library";
import { IoredisLibrary } from "../../runtime/stores/redis/ioredis/library";
import { createClientIn } from "../../runtime/stores/redis/node-redis/create-client";
import { NodeRedisLibrary } from "../../runtime/stores/redis/node-redis/library";

// The choice of a client library for a URL. These tests replace what `require()` returns, and the program's first file.

/** The packages that `require()` seems to lack, or finds in an old version. */
type Packages = Partial<Record<LibraryName, "missing" | "too old">>;

function replacePackages(t: ExecutionContext, packages: Packages): void {
  for (const [name, state] of Object.entries(packages)) {
    require(name);
    const loaded = require.cache[require.resolve(name)];
    if (loaded === undefined) throw new Error(`Expected ${name} to be loaded`);
    const { exports: original } = loaded as { exports: unknown };
    Object.defineProperty(loaded, "exports", {
      configurable: true,
      get() {
        if (state === "missing") throw new Error(`Cannot find module '${name}'`);
        return { createClient() {} }; // As node-redis 4 and ioredis 4, which lack some members of newer versions.
      },
    });
    t.teardown(() => Object.defineProperty(loaded, "exports", { configurable: true, value: original }));
  }
}

/** Writes an application with these files, and makes one of them the program's first file. Returns its directory. */
async function runIn(
  t: ExecutionContext,
  program: string,
  manifests: Record<string, object>,
): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "declared-")));
  const [node = "", before = ""] = process.argv;
  t.teardown(async () => {
    process.argv.splice(0, 2, node, before);
    await rm(dir, { recursive: true });
  });
  for (const [file, manifest] of Object.entries({ [program]: {}, ...manifests })) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), JSON.stringify(manifest));
  }
  process.argv.splice(0, 2, node, join(dir, program));
  return dir;
}

interface Choice {
  readonly name: LibraryName;
  readonly debug: string;
  readonly warnings: readonly string[];
}

function choose(chosen?: LibraryName): Choice {
  const [debug, warnings]: [string[], string[]] = [[], []];
  const library = loadLibrary(chosen, {
    debug: (message) => void debug.push(message),
    warn: (message) => void warnings.push(message),
  });
  if (library instanceof NodeRedisLibrary) return { name: "redis", debug: debug.join(), warnings };
  if (library instanceof IoredisLibrary) return { name: "ioredis", debug: debug.join(), warnings };
  throw new Error("Expected one of the two libraries");
}

test("node-redis 5.0.0 can connect to a URL, and version 4 is too old", (t) => {
  const createClient = () => {};
  const version4 = { createClient, createCluster() {} };
  t.is(createClientIn(version4), undefined);
  const version5: object = { ...version4, createSentinel() {} };
  for (const exported of [version5, { default: version5 }]) {
    const found: unknown = createClientIn(exported);
    t.is(found, createClient);
  }
});

const IOREDIS = { dependencies: { ioredis: "^5.0.0" } };
const NODE_REDIS = { dependencies: { redis: "^6.0.0" } };

test.serial("the library that the application's package.json declares connects to a URL", async (t) => {
  for (const [manifest, name] of [
    [IOREDIS, "ioredis"],
    [NODE_REDIS, "redis"],
    [{ devDependencies: { redis: "^6.0.0" } }, "redis"],
  ] as const) {
    const dir = await runIn(t, "dist/main.js", { "package.json": manifest });
    t.deepEqual(choose(), {
      name,
      debug: `Lockweave connects to Redis with the package ${name}, because ${join(dir, "package.json")} declares it`,
      warnings: [],
    });
  }
});

test.serial("ioredis connects if package.json declares both", async (t) => {
  const both = { dependencies: { redis: "^6.0.0", ioredis: "^5.0.0" } };
  await runIn(t, "main.js", { "package.json": both });
  t.like(choose(), { name: "ioredis", warnings: [] });
  t.regex(choose().debug, /declares both$/);
});

test.serial(
  "the nearest package.json that declares a library determines which library connects",
  async (t) => {
    const dir = await runIn(t, "apps/one/dist/main.js", {
      "package.json": IOREDIS,
      "apps/one/package.json": NODE_REDIS,
      "apps/one/dist/package.json": { type: "commonjs" },
    });
    t.like(choose(), { name: "redis" });
    t.true(choose().debug.includes(join(dir, "apps/one/package.json")));
  },
);

test.serial("the package.json of a tool that runs the application does not count", async (t) => {
  await runIn(t, "node_modules/runner/bin/run.js", {
    "package.json": NODE_REDIS,
    "node_modules/runner/package.json": IOREDIS,
  });
  t.like(choose(), { name: "redis", warnings: [] });
});

test.serial("the option `client` takes precedence over package.json", async (t) => {
  await runIn(t, "main.js", { "package.json": IOREDIS });
  t.deepEqual(choose("redis"), {
    name: "redis",
    debug: "Lockweave connects to Redis with the package redis, because the option `client` names it",
    warnings: [],
  });
});

for (const [state, words] of [
  ["missing", "cannot be loaded"],
  ["too old", "is too old"],
] as const) {
  test.serial(`a declared library that is ${state} counts as absent, and a warning says so`, async (t) => {
    const dir = await runIn(t, "main.js", { "package.json": NODE_REDIS });
    replacePackages(t, { redis: state });
    t.deepEqual(choose(), {
      name: "ioredis",
      debug: "",
      warnings: [
        `Lockweave connects to Redis with the package ioredis, because redis, which ${join(dir, "package.json")} declares, ${words}. Fix: npm install redis@latest`,
      ],
    });
  });
}

const BOTH = "A Redis URL needs ioredis 5.4 or later, or node-redis 5 or later (the package `redis`)";

for (const [packages, chosen, message] of [
  [
    { ioredis: "missing", redis: "missing" },
    undefined,
    `${BOTH}. Fix: npm install ioredis, or npm install redis`,
  ],
  [
    { ioredis: "missing", redis: "too old" },
    undefined,
    `${BOTH}, but the installed redis is too old. Fix: npm install ioredis@latest, or npm install redis@latest`,
  ],
  [
    { ioredis: "too old" },
    "ioredis",
    "A Redis URL needs ioredis 5.4 or later, but the installed ioredis is too old. Fix: npm install ioredis@latest",
  ],
  [
    { redis: "missing" },
    "redis",
    "A Redis URL needs node-redis 5 or later (the package `redis`). Fix: npm install redis",
  ],
] as const) {
  test.serial(`the error names what to install: ${message}`, (t) => {
    replacePackages(t, packages);
    t.throws(() => choose(chosen), { instanceOf: LockMisconfiguredError, message });
  });
}
