import type { ClientLibrary } from "../client-port.js";
import { libraryOf } from "./library.js";

/** Loads ioredis. Bundlers find this import, and may put ioredis into the bundle. */
export async function loadIoredis(): Promise<ClientLibrary | undefined> {
  let ioredis: unknown;
  try {
    ioredis = await import("ioredis");
  } catch (error) {
    // Without this `try`, a bundler would require that ioredis is installed.
    throw new Error("ioredis cannot be loaded", { cause: error });
  }
  return libraryOf(ioredis);
}
