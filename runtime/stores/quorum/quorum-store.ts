import { systemClock } from "../../clock";
import { milliseconds, type Duration } from "../../duration";
import { LockOptionError } from "../../errors";
import { isOptions, readFrom, readOptions } from "../../options";
import { formatValue } from "../../format-value";
import { openQuorum, type OpenStore } from "../late-store";
import type { Store } from "../port";
import type { RedisAddress } from "../redis/address";
import type { RedisClient } from "../redis/client";
import { loadIoredis } from "../redis/ioredis";
import type { RedisClass } from "../redis/redis-class";
import { loadQuorum } from "./load-quorum";

export interface QuorumOptions {
  /**
   * No lock may ask for a longer `lockTime`, and for so long a master does not count after its start. The same in all
   * processes. Default `"1m"`.
   */
  readonly longestLockTime?: Duration;
}

/**
 * Locks in several Redis masters that know nothing of each other: a lock is held while a majority of them says so, and so
 * outlives the loss of the others. All processes are given the same masters, in the same order.
 *
 * @param masters three at least: ioredis clients of one node each, which stay yours to close, or `redis://` URLs
 * @throws {LockOptionError} on what cannot be a master, and on one that is given twice
 */
export function quorumStore(
  masters: readonly (RedisClient | RedisAddress)[],
  options: QuorumOptions = {},
): Store {
  const expected = (): LockOptionError =>
    new LockOptionError(
      `Expected quorumStore(masters) or quorumStore(masters, { longestLockTime: "1m" }), got ${formatValue(options)}`,
    );
  if (!isOptions(options)) throw expected();
  const { longestLockTime = "1m" } = readOptions(options, ["longestLockTime"], expected);
  const longestLockTimeMs = milliseconds("longestLockTime", longestLockTime, 100);
  const { QuorumStore, redisMasters } = loadQuorum();
  const { needIoredis, open } = readFrom("The list of masters", () => redisMasters(masters));
  const openStore = (Redis?: RedisClass): OpenStore => {
    const members = readFrom("The list of masters", () => open(Redis));
    return new QuorumStore(members, systemClock, longestLockTimeMs);
  };
  return needIoredis ? openQuorum(loadIoredis(), openStore) : openStore();
}
