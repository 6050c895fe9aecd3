import type { ClientLibrary } from "../client-port.js";
import { libraryOf } from "./library.js";

/**
 * Loads node-redis. webpack and esbuild leave this import out of a bundle, because webpack would otherwise warn in each application without
 * node-redis.
 */
export async function loadNodeRedis(): Promise<ClientLibrary | undefined> {
  let redis: unknown;
  try {
    redis = await import(/* webpackIgnore: true */ "redis");
  } catch (error) {
    // Without this `try`, a bundler would require that node-redis is installed.
    throw new Error("node-redis cannot be loaded", { cause: error });
  }
  return libraryOf(redis);
}
