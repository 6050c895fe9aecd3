import { randomFillSync } from "node:crypto";
import { v4 as uuid } from "uuid";

const BYTES = 16;

/** Drawn for many at once: to ask the system for random bytes costs as much as half a lock. */
const random = Buffer.alloc(256 * BYTES);
let used = random.length;
const id = Buffer.alloc(BYTES);

/** A new random UUID (version 4) as 32 hex characters. */
export function newRequestId(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  random.copy(id, 0, used, (used += BYTES));
  return uuid({ random: id }, id).toString("hex");
}
