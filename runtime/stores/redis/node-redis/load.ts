import type { ClientLibrary } from "../client-port";
import { libraryOf } from "./library";

/**
 * Loads node-redis. The ES module uses `load.mts` in place of this file, and loads node-redis asynchronously.
 *
 * @returns `undefined` if it is too old
 * @throws {Error} if it cannot be loaded. Its cause says why
 */
export function loadNodeRedis(): ClientLibrary | undefined | Promise<ClientLibrary | undefined> {
  try {
    return libraryOf(require("redis"));
  } catch (error) {
    // Without this `try`, a bundler would require that node-redis is installed.
    throw new Error("node-redis cannot be loaded", { cause: error });
  }
}
