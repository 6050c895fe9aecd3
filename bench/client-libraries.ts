import { createRequire } from "node:module";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import type { Configuration } from "../runtime";

/** A connected client of one library. To add a library, add a row to `LIBRARIES`. */
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

type Connect = (port: number) => Promise<ConnectedClient>;

/** The folder in which `test/matrix/clients.ts` installed libraries that are no development dependencies, such as GLIDE. */
const folder = process.env["CLIENTS_FROM"];

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

export const LIBRARIES: Readonly<Record<string, Connect>> = {
  async ioredis(port) {
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
  },

  async "node-redis"(port) {
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
  },

  ...(folder !== undefined && { glide: connectGlide }),
};

async function connectGlide(port: number): Promise<ConnectedClient> {
  const from = createRequire(join(folder ?? "", "package.json"));
  const { GlideClient, Script } = from("@valkey/valkey-glide") as Glide;
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
