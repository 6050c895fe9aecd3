import { loadCrypto } from "./node-crypto";
import { loadUuid } from "./uuid";

const BYTES = 16;
const NUMBER_BYTES = 6;
const RANDOM_BYTES = BYTES - NUMBER_BYTES;

/** Drawn for many at once: to ask the system for random bytes costs as much as half a lock. */
const random = Buffer.alloc(256 * RANDOM_BYTES);
let used = random.length;

/** Where the ids of one process come from. */
export interface RequestIds {
  /** What all of them begin with: 12 hex characters, the first 48 bits of a random UUID. */
  readonly processNumber: string;
  /** A new id of 32 hex characters: the process's number, and 80 random bits. */
  next(): string;
}

/** Draws the number of a process: each configuration has its own, as if it were alone in its process. */
export function requestIds(): RequestIds {
  const id = Buffer.alloc(BYTES);
  const { randomFillSync } = loadCrypto();
  loadUuid()({}, id);
  return {
    processNumber: id.toString("hex", 0, NUMBER_BYTES),
    next() {
      if (used === random.length) {
        randomFillSync(random);
        used = 0;
      }
      random.copy(id, NUMBER_BYTES, used, (used += RANDOM_BYTES));
      return id.toString("hex");
    },
  };
}
