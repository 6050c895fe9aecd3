/**
 * The class `Redis` of ioredis. It has no exact type here: TypeScript reads this file in every application, and not all of them have
 * ioredis installed.
 */
export type RedisClass = new (...args: never[]) => object;

interface Ioredis {
  readonly Redis?: RedisClass;
  /** All exports, if a bundler does not find the names of the CommonJS exports. */
  readonly default?: Ioredis;
}

/** Returns the class, or undefined if this ioredis is too old. */
export function redisIn(ioredis: unknown): RedisClass | undefined {
  const { Redis, default: all } = ioredis as Ioredis;
  const found = Redis ?? all?.Redis;
  return typeof found === "function" ? found : undefined;
}
