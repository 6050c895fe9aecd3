import { memoryStore, type Configuration } from "lockweave";

/** Where the locks live. */
interface Place {
  readonly name: string;
  readonly options: Pick<Configuration, "redis" | "postgres" | "store">;
}

/** Returns the server that the environment names, or the memory store. */
export function placeOfLocks(): Place {
  const { REDIS_URL: redis, POSTGRES_URL: postgres } = process.env;
  if (redis !== undefined && postgres !== undefined) {
    console.error("Both REDIS_URL and POSTGRES_URL are set. Fix: set only one of them.");
    process.exit(1);
  }
  if (redis !== undefined) return { name: "Redis", options: { redis } };
  if (postgres !== undefined) return { name: "PostgreSQL", options: { postgres } };
  return { name: "the memory store", options: { store: memoryStore() } };
}
