import { cannotLoad, redisIn, type RedisClass } from "./redis-class.js";

/** Loads ioredis. Bundlers find this import, and may put ioredis into the bundle. */
export async function loadIoredis(): Promise<RedisClass> {
  let ioredis: unknown;
  try {
    ioredis = await import("ioredis");
  } catch (error) {
    throw cannotLoad(error);
  }
  return redisIn(ioredis);
}
