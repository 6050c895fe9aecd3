import { nameBeside } from "../../runtime/stores/redis/keys";

/** The Redis key of a lock's queue. */
export function queueOf(key: string): string {
  return nameBeside("queue", "", key);
}

/** The Redis key of a lock's fencing counter. */
export function fenceOf(key: string): string {
  return nameBeside("fence", "", key);
}

/** The Redis key of the holds of a shared lock. */
export function holdsOf(key: string): string {
  return nameBeside("holds", "", key);
}
