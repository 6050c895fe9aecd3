import type * as Crypto from "node:crypto";

/**
 * Loads `node:crypto` with the first configuration. It takes a third of the time in which this package loads, so an import must not load
 * it.
 */
export function loadCrypto(): typeof Crypto {
  return process.getBuiltinModule("node:crypto");
}
