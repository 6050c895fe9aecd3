import { nameBeside } from "../../runtime/stores/redis/keys";

/** Where the queue of a lock stands in Redis. */
export function queueOf(key: string): string {
  return nameBeside("queue", "", key);
}

/** Where the counter of a lock's fencing tokens stands in Redis. */
export function fenceOf(key: string): string {
  return nameBeside("fence", "", key);
}

/** Where the holds of a shared lock stand in Redis. */
export function holdsOf(key: string): string {
  return nameBeside("holds", "", key);
}
