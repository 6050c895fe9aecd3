import { LockMisconfiguredError, errorMessage } from "../../base/errors";

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

/** @throws {LockMisconfiguredError} if this ioredis is too old */
export function redisIn(ioredis: unknown): RedisClass {
  const { Redis, default: all } = ioredis as Ioredis;
  const found = Redis ?? all?.Redis;
  if (typeof found === "function") return found;
  throw new LockMisconfiguredError(
    "A Redis URL needs ioredis 5.4 or later, but an older version is installed. Fix: npm install ioredis@latest",
  );
}

export function cannotLoad(cause: unknown): LockMisconfiguredError {
  const reason = errorMessage(cause);
  // The error of esbuild if CommonJS code in an ES module requires a module of Node.
  const message = reason.includes("Dynamic require of")
    ? `A Redis URL needs the package ioredis, and this bundle cannot load it: ${reason}. Fix: leave ioredis out of the bundle, as an external package, or give the bundle a \`require\`: see "Everything in one file" in Lockweave's docs/compilers.md`
    : "A Redis URL needs the package ioredis. Fix: npm install ioredis";
  return new LockMisconfiguredError(message, { cause });
}
