import { loadCrypto } from "./node-crypto";

const BYTES = 16;
const NUMBER_BYTES = 6;
/** The number of IDs for which random bytes are drawn together. A system call for random bytes costs as much as half a lock. */
const DRAWN_AT_ONCE = 256;

/** The source of the request IDs of one process. */
export interface RequestIds {
  /** The prefix of all its IDs: 12 hex characters, 48 random bits. */
  readonly processNumber: string;
  /** Returns a new ID of 32 hex characters: the process number, and 80 random bits. */
  next(): string;
}

/** Draws a process number. Each configuration has its own, as if it were alone in its process. */
export function requestIds(): RequestIds {
  const { randomBytes, randomFillSync } = loadCrypto();
  const number = randomBytes(NUMBER_BYTES);
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
