import { LIBRARIES, type LibraryName } from "../../../runtime/stores/redis/address";
import { declaredLibraries } from "../../../runtime/stores/declared-libraries";
import { UsageError } from "../../terminal/usage-error";
import { clientsOfIoredis } from "./ioredis";
import { clientsOfNodeRedis } from "./node-redis";
import type { OpenClient } from "./server";

/** Load the libraries. They return undefined if the library is too old, and throw if it is missing. */
const LOADERS: Readonly<Record<LibraryName, () => OpenClient | undefined>> = {
  ioredis() {
    const ioredis = require("ioredis") as typeof import("ioredis");
    return typeof ioredis.Redis === "function" ? clientsOfIoredis(ioredis) : undefined;
  },
  redis() {
    const redis = require("redis") as typeof import("redis");
    return typeof redis.createClientPool === "function" ? clientsOfNodeRedis(redis.createClient) : undefined;
  },
};

/**
 * Returns a function that creates clients of the library that the project declares, or else of one that is installed.
 *
 * @param needsSentinel whether an address is one of Sentinel, which only ioredis can connect to
 * @throws {UsageError} if none is installed
 */
export function loadClients(needsSentinel: boolean): OpenClient {
  const declared = declaredLibraries(LIBRARIES)?.names ?? [];
  const others = LIBRARIES.filter((name) => !declared.includes(name));
  const candidates: readonly LibraryName[] = needsSentinel ? ["ioredis"] : [...declared, ...others];
  for (const name of candidates) {
    try {
      const open = LOADERS[name]();
      if (open !== undefined) return open;
    } catch {
      // It is not installed.
    }
  }
  throw new UsageError(
    needsSentinel
      ? "A Sentinel address needs the package ioredis, which is not installed. Fix: run `npm install ioredis`."
      : "Neither ioredis nor redis is installed. Fix: run `npm install ioredis` or `npm install redis`.",
  );
}
