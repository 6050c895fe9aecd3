import { createRequire } from "node:module";
import { join } from "node:path";
import type * as Iovalkey from "ioredis";
import type * as NodeRedis from "redis";
import type { Configuration } from "../runtime";
import { installed, type SetName } from "../test/hosts/installed";

/** A connected client of one library. */
export interface ConnectedClient {
  /** The value that an application passes to `configure()`. */
  readonly redis: NonNullable<Configuration["redis"]>;
  /** The commands of a hand-written lock, as users of this library write them. */
  readonly byHand: HandCommands;
}

export interface HandCommands {
  /** Sets the key unless it exists. Resolves to `"OK"` if it did. */
  set(key: string, token: string, lockTimeMs: number): Promise<unknown>;
  /** Loads the script, and resolves to its digest. */
  load(script: string): Promise<unknown>;
  run(digest: string, key: string, token: string): Promise<unknown>;
}

export interface Library {
  connect(port: number): Promise<ConnectedClient>;
  /** The program that runs its process, if it is not Node. */
  program?(): Promise<string>;
}

/** The parts of Valkey GLIDE that a hand-written lock uses. */
interface Glide {
  readonly GlideClient: { createClient(config: object): Promise<GlideClient> };
  readonly Script: new (source: string) => object;
}

interface GlideClient {
  customCommand(...args: never[]): Promise<unknown>;
  getPubSubMessage(...args: never[]): Promise<unknown>;
  set(key: string, value: string, options: object): Promise<unknown>;
  invokeScript(script: object, options: object): Promise<unknown>;
}

/** The parts of Bun that a hand-written lock uses. */
interface Bun {
  readonly RedisClient: new (url: string) => BunClient;
}

interface BunClient {
  readonly connected: boolean;
  readonly bufferedAmount: number;
  connect(): Promise<unknown>;
  duplicate(): Promise<unknown>;
  send(command: string, args: readonly string[]): Promise<unknown>;
  set(key: string, value: string, ...options: readonly string[]): Promise<unknown>;
}

/** To add a library, add a row. The sets of packages are in test/matrix/packages.json. */
export const LIBRARIES: Readonly<Record<string, Library>> = {
  ioredis: { connect: async (port) => connectIoredis(await load("ioredis-6", "ioredis"), port) },
  iovalkey: { connect: async (port) => connectIoredis(await load("iovalkey", "iovalkey"), port) },
  "redis 6": { connect: async (port) => connectNodeRedis(await load("runtimes", "redis"), port) },
  "redis 5": { connect: async (port) => connectNodeRedis(await load("redis-5", "redis"), port) },
  glide: { connect: async (port) => connectGlide(await load("clients", "@valkey/valkey-glide"), port) },
  bun: {
    connect: (port) => connectBun(require("bun") as Bun, port),
    program: async () => join(await installed("bun"), "bun/bin/bun.exe"),
  },
};

async function load<Module>(set: SetName, name: string): Promise<Module> {
  return createRequire(join(await installed(set), "index.js"))(name) as Module;
}

async function connectIoredis({ Redis }: typeof Iovalkey, port: number): Promise<ConnectedClient> {
  const redis = new Redis({ host: "127.0.0.1", port, lazyConnect: true });
  await redis.connect();
  return {
    redis,
    byHand: {
      set: (key, token, lockTimeMs) => redis.set(key, token, "PX", lockTimeMs, "NX"),
      load: (script) => redis.script("LOAD", script),
      run: (digest, key, token) => redis.evalsha(digest, 1, key, token),
    },
  };
}

async function connectNodeRedis({ createClient }: typeof NodeRedis, port: number): Promise<ConnectedClient> {
  const redis = createClient({ socket: { host: "127.0.0.1", port } });
  redis.on("error", console.error);
  await redis.connect();
  return {
    redis,
    byHand: {
      set: (key, token, lockTimeMs) =>
        redis.set(key, token, { condition: "NX", expiration: { type: "PX", value: lockTimeMs } }),
      load: (script) => redis.scriptLoad(script),
      run: (digest, key, token) => redis.evalSha(digest, { keys: [key], arguments: [token] }),
    },
  };
}

async function connectGlide({ GlideClient, Script }: Glide, port: number): Promise<ConnectedClient> {
  // By default, GLIDE rejects a command if 1,000 others have no reply yet, and a command that takes 250 ms.
  const config = {
    addresses: [{ host: "127.0.0.1", port }],
    inflightRequestsLimit: 10_000,
    requestTimeout: 10_000,
  };
  const glide = await GlideClient.createClient(config);
  let release: object = {};
  return {
    redis: { glide, config },
    byHand: {
      set: (key, token, lockTimeMs) =>
        glide.set(key, token, {
          conditionalSet: "onlyIfDoesNotExist",
          expiry: { type: "PX", count: lockTimeMs },
        }),
      async load(script) {
        release = new Script(script);
        return "";
      },
      run: (_, key, token) => glide.invokeScript(release, { keys: [key], args: [token] }),
    },
  };
}

async function connectBun({ RedisClient }: Bun, port: number): Promise<ConnectedClient> {
  const redis = new RedisClient(`redis://127.0.0.1:${port}`);
  await redis.connect();
  return {
    redis,
    byHand: {
      set: (key, token, lockTimeMs) => redis.set(key, token, "PX", String(lockTimeMs), "NX"),
      load: (script) => redis.send("SCRIPT", ["LOAD", script]),
      run: (digest, key, token) => redis.send("EVALSHA", [digest, "1", key, token]),
    },
  };
}
