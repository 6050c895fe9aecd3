import { cannotLoad, redisIn, type RedisClass } from "./redis-class";

/**
 * Loads ioredis. The ES module uses `ioredis.mts` in place of this file, and loads ioredis asynchronously.
 *
 * @throws {LockMisconfiguredError} if it is not installed, or too old
 */
export function loadIoredis(): RedisClass | Promise<RedisClass> {
  let ioredis: unknown;
  try {
    ioredis = require("ioredis");
  } catch (error) {
    throw cannotLoad(error);
  }
  return redisIn(ioredis);
}
