import type { ClientLibrary } from "../client-port";
import { libraryOf } from "./library";

/**
 * Loads ioredis. The ES module uses `load.mts` in place of this file, and loads ioredis asynchronously.
 *
 * @returns `undefined` if it is too old
 * @throws {Error} if it cannot be loaded. Its cause says why
 */
export function loadIoredis(): ClientLibrary | undefined | Promise<ClientLibrary | undefined> {
  try {
    return libraryOf(require("ioredis"));
  } catch (error) {
    // Without this `try`, a bundler would require that ioredis is installed.
    throw new Error("ioredis cannot be loaded", { cause: error });
  }
}
