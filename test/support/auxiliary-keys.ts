import { auxiliaryKey } from "../../runtime/stores/redis/keys";

/** The Redis key of a lock's queue. */
export function queueOf(key: string): string {
  return auxiliaryKey("queue", "", key);
}

/** The Redis key of a lock's fencing counter. */
export function fenceOf(key: string): string {
  return auxiliaryKey("fence", "", key);
}

/** The Redis key of the holds of a shared lock. */
export function holdsOf(key: string): string {
  return auxiliaryKey("holds", "", key);
}
