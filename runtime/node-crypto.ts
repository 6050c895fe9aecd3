import type * as Crypto from "node:crypto";

/** A third of what it takes to load us would be for this: it waits for the first configuration, too. */
export function loadCrypto(): typeof Crypto {
  return process.getBuiltinModule("node:crypto");
}
