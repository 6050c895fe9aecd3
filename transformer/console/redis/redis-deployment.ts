import { LONGEST_ANNOUNCEMENT } from "../../../runtime/base/limits";
import { processName } from "../../../runtime/stores/redis/keys";
import { ask } from "../port/errors";
import {
  type Announcements,
  type Connected,
  type Deployment,
  type FoundLock,
  type Scan,
} from "../port/deployment";
import type { StoredLock } from "../port/stored-lock";
import { KeyScanner } from "./key-scanner";
import { readLock, readLocks } from "./read-locks";
import { openServers, type Servers } from "./servers";
import type { Server } from "./server";

export interface RedisTarget {
  /** One Redis, Sentinel, or cluster node, or the masters of a quorum. */
  readonly redis: readonly string[];
  /** A pattern of `SCAN` that matches the keys of locks. */
  readonly match: string;
  /** The `keyPrefix` of the client. */
  readonly prefix: string;
}

/** The announcements that are read at the same time. */
const READ_AT_ONCE = 20;
const COMMANDS_PER_ANNOUNCEMENT = 2;

/**
 * Connects to the servers.
 *
 * @throws {UsageError} if a server cannot be reached, or, for a quorum, if a majority cannot be reached
 */
export async function openRedis(target: RedisTarget): Promise<Deployment> {
  return new RedisDeployment(await openServers(target.redis), target);
}

class RedisDeployment implements Deployment {
  readonly names: readonly string[];
  readonly #servers: Servers;
  readonly #target: RedisTarget;
  readonly #scanners = new Map<Server, KeyScanner>();

  constructor(servers: Servers, target: RedisTarget) {
    this.names = servers.names;
    this.#servers = servers;
    this.#target = target;
  }

  async scan(maxNames: number): Promise<Scan> {
    const masters = this.#servers.masters();
    const scans = await this.#enoughReplies(masters.map((server) => this.#scanMaster(server, maxNames)));
    return {
      locks: merged(scans.flatMap((scan) => scan.found)),
      keys: sum(scans.map(({ keys }) => keys)),
      scanned: sum(scans.map(({ names }) => names)),
      isWhole: scans.every(({ isWhole }) => isWhole),
      leftOut: sum(scans.map(({ leftOut }) => leftOut)),
      masters: masters.length,
      unanswered: masters.length - scans.length,
      commands: sum(scans.map(({ commands }) => commands)),
    };
  }

  async read(key: string): Promise<FoundLock | undefined> {
    const { prefix } = this.#target;
    const readings = this.#servers.masters().map((server) => readLock(server, prefix, key));
    const [lock] = merged((await this.#enoughReplies(readings)).flatMap(({ found }) => found));
    return lock;
  }

  async announcements(numbers: readonly string[]): Promise<Announcements> {
    const found = new Map<string, { readonly about: string; readonly leftMs: number }>();
    const readOne = async (number: string): Promise<void> => {
      try {
        const name = this.#target.prefix + processName(number);
        const { value, leftMs } = await this.#servers.read(name, LONGEST_ANNOUNCEMENT);
        if (value !== undefined && Buffer.byteLength(value) < LONGEST_ANNOUNCEMENT)
          found.set(number, { about: value, leftMs });
      } catch {
        // The lock itself was read. A process without an announcement is shown by its number.
      }
    };
    for (let from = 0; from < numbers.length; from += READ_AT_ONCE)
      await Promise.all(numbers.slice(from, from + READ_AT_ONCE).map(readOne));
    return { found, commands: COMMANDS_PER_ANNOUNCEMENT * numbers.length };
  }

  async connect(): Promise<Connected> {
    const { redis, close } = await this.#servers.prefixed(this.#target.prefix);
    return { configuration: { redis }, close };
  }

  close(): void {
    this.#servers.close();
  }

  async #scanMaster(
    server: Server,
    maxNames: number,
  ): Promise<{
    found: readonly StoredLock[];
    keys: number;
    names: number;
    commands: number;
    isWhole: boolean;
    leftOut: number;
  }> {
    const { match, prefix } = this.#target;
    const scanner = this.#scanners.get(server) ?? new KeyScanner(server, match, prefix);
    this.#scanners.set(server, scanner);
    const scanned = await scanner.scan(maxNames);
    const keys = Number(await ask(() => server.send("dbsize")));
    const { found, free, commands } = await readLocks(server, prefix, scanner.keys);
    for (const key of free) scanner.forget(key);
    const { isWhole, leftOut } = scanner;
    return {
      found,
      keys,
      names: scanned.names,
      commands: scanned.commands + 1 + commands,
      isWhole,
      leftOut,
    };
  }

  /** Returns the replies of the servers that answered, if there are enough of them. A majority of a quorum is enough. */
  async #enoughReplies<Reply>(asked: readonly Promise<Reply>[]): Promise<readonly Reply[]> {
    const settled = await Promise.allSettled(asked);
    const replies = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined && replies.length < this.#servers.needed()) throw failed.reason;
    return replies;
  }
}

/** Merges what several masters of a quorum store for each lock. */
function merged(locks: readonly StoredLock[]): readonly FoundLock[] {
  const byKey = new Map<string, FoundLock>();
  for (const lock of locks) {
    const other = byKey.get(lock.key);
    const isBetter = other === undefined || lock.holders.length > other.holders.length;
    byKey.set(lock.key, {
      ...(isBetter ? lock : other),
      waiting: Math.max(lock.waiting, other?.waiting ?? 0),
      masters: (other?.masters ?? 0) + 1,
      values: [...new Set([...(other?.values ?? []), ...lock.values])],
      refusal: other?.refusal ?? lock.refusal,
    });
  }
  return [...byKey.values()];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
