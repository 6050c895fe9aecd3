import { systemClock } from "../../base/clock";
import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import {
  connectionTo,
  isAddress,
  type Connection,
  type LibraryName,
  type RedisAddress,
} from "../redis/address";
import type { GivenClient } from "../redis/client";
import type { ClientLibrary } from "../redis/client-port";
import type { Libraries } from "../redis/load-library";
import { assertClient, libraryWithUnseenReconnects, serversOf } from "../redis/recognize-client";
import { storeAt, storeOver, type RedisStore } from "../redis/redis";
import type { Member } from "./master";
import { Servers, StartTime } from "./start-time";

const MIN_MASTERS = 3;

/** Redis masters as the members of a quorum, before they are opened. */
interface Masters {
  /** The libraries that the user chose for the addresses among them. */
  readonly libraries: ReadonlySet<LibraryName | undefined>;
  open(libraries: Libraries): readonly Member[];
}

/** @throws {LockOptionError} if one of them cannot be a master, or appears twice */
export function redisMasters(masters: readonly (GivenClient | RedisAddress)[]): Masters {
  if (!Array.isArray(masters) || masters.length < MIN_MASTERS) {
    throw new LockOptionError(
      `Expected at least ${MIN_MASTERS} masters: clients of ioredis, iovalkey, node-redis, or Bun, or redis:// URLs, got ${formatValue(masters)}`,
    );
  }
  if (new Set(masters).size < masters.length) {
    throw new LockOptionError(
      "Expected different masters, got one of them twice. Fix: list each master once",
    );
  }
  for (const master of masters) if (!isAddress(master)) assertSingleNode(master);
  const connections = masters.map((master) =>
    isAddress(master) ? connectionTo(master, "redis") : { given: master },
  );
  return {
    libraries: new Set(connections.flatMap((one) => ("given" in one ? [] : [one.client]))),
    open(libraries) {
      const servers = new Servers();
      return connections.map((one) =>
        memberOf("given" in one ? storeOver(one.given) : storeAt(libraryIn(libraries, one), one), servers),
      );
    },
  };
}

function libraryIn(libraries: Libraries, { client }: Connection): ClientLibrary {
  const library = libraries.get(client);
  if (library === undefined) throw new Error("the client library has not loaded");
  return library;
}

/** Rejects clients of several servers. A vote must come from one server that remembers its votes, or is known to have lost them. */
function assertSingleNode(client: GivenClient): void {
  assertClient(client);
  const library = libraryWithUnseenReconnects(client);
  if (library !== undefined) {
    throw new LockOptionError(
      `Expected each master to be a client of ioredis, iovalkey, node-redis, or Bun, or a redis:// URL, got a client of ${library}. It may reconnect without notice to a master that lost its locks in a restart. Fix: pass the redis:// URL of the master instead`,
    );
  }
  const servers = serversOf(client);
  if (servers === "one node") return;
  const kind = servers === "cluster" ? "a cluster" : "servers behind Sentinel";
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
