import { systemClock } from "../../base/clock";
import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import { connectionTo, isAddress, type RedisAddress } from "../redis/address";
import { assertClient, isCluster, type RedisClient } from "../redis/client";
import type { RedisClass } from "../redis/redis-class";
import { storeAt, storeOver, type RedisStore } from "../redis/redis";
import type { Member } from "./master";
import { Servers, StartTime } from "./start-time";

const MIN_MASTERS = 3;

/** Redis masters as the members of a quorum, before they are opened. */
interface Masters {
  /** Whether one of them is an address. */
  readonly needIoredis: boolean;
  open(Redis?: RedisClass): readonly Member[];
}

/** @throws {LockOptionError} if one of them cannot be a master, or appears twice */
export function redisMasters(masters: readonly (RedisClient | RedisAddress)[]): Masters {
  if (!Array.isArray(masters) || masters.length < MIN_MASTERS) {
    throw new LockOptionError(
      `Expected at least ${MIN_MASTERS} masters: ioredis clients or redis:// URLs, got ${formatValue(masters)}`,
    );
  }
  if (new Set(masters).size < masters.length) {
    throw new LockOptionError(
      "Expected different masters, got one of them twice. Fix: list each master once",
    );
  }
  for (const master of masters) if (!isAddress(master)) assertSingleNode(master);
  const openers = masters.map(openerOf);
  return {
    needIoredis: masters.some(isAddress),
    open(Redis) {
      const servers = new Servers();
      return openers.map((open) => memberOf(open(Redis), servers));
    },
  };
}

function openerOf(master: RedisClient | RedisAddress): (Redis?: RedisClass) => RedisStore {
  if (!isAddress(master)) return () => storeOver(master);
  const connection = connectionTo(master, "redis");
  return (Redis) => {
    if (Redis === undefined) throw new Error("ioredis has not loaded");
    return storeAt(Redis, connection);
  };
}

/** Rejects clients of several servers. A vote must come from one server that remembers its votes, or is known to have lost them. */
function assertSingleNode(client: RedisClient): void {
  assertClient(client);
  const { sentinels } = client.options as { readonly sentinels?: unknown };
  if (!isCluster(client) && (sentinels ?? null) === null) return;
  const kind = isCluster(client) ? "a cluster" : "servers behind Sentinel";
  throw new LockOptionError(
    `Expected each master to be a client of one Redis node, got a client of ${kind}. There, a replica without the lock can become the master`,
  );
}

function memberOf(store: RedisStore, servers: Servers): Member {
  const startTime = new StartTime(store.client, systemClock, servers);
  return {
    store,
    raiseFence: (key, token, lockTimeMs, timeoutMs) => store.raiseFence(key, token, lockTimeMs, timeoutMs),
    startedAt: () => startTime.get(),
    async close() {
      startTime.close();
      await store.close();
    },
  };
}
