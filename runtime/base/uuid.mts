import { loadCrypto } from "./node-crypto.js";

/** Returns a function that makes random UUIDs. Node's own needs no package, so a bundle cannot lack it. */
export function loadUuid(): () => string {
  return loadCrypto().randomUUID;
}
