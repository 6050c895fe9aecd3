import { loadCrypto } from "./node-crypto";
import { loadUuid } from "./uuid";

const BYTES = 16;
const NUMBER_BYTES = 6;
/** Drawn for so many at once: to ask the system for random bytes costs as much as half a lock. */
const DRAWN_AT_ONCE = 256;

/** Where the ids of one process come from. */
export interface RequestIds {
  /** What all of them begin with: 12 hex characters, the first 48 bits of a random UUID. */
  readonly processNumber: string;
  /** A new id of 32 hex characters: the process's number, and 80 random bits. */
  next(): string;
}

/** Draws the number of a process: each configuration has its own, as if it were alone in its process. */
export function requestIds(): RequestIds {
  const { randomFillSync } = loadCrypto();
  const number = Buffer.from(loadUuid()().replaceAll("-", ""), "hex").subarray(0, NUMBER_BYTES);
  const drawn = Buffer.alloc(DRAWN_AT_ONCE * BYTES);
  let used = drawn.length;
  const draw = (): void => {
    randomFillSync(drawn);
    for (let at = 0; at < drawn.length; at += BYTES) drawn.set(number, at);
    used = 0;
  };
  return {
    processNumber: number.toString("hex"),
    next() {
      if (used === drawn.length) draw();
      return drawn.toString("hex", used, (used += BYTES));
    },
  };
}
