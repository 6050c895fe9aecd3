import { systemClock } from "../../base/clock";
import { milliseconds, type Duration } from "../../base/duration";
import { LockOptionError } from "../../base/errors";
import { isOptions, readFrom, readOptions } from "../../base/options";
import { formatValue } from "../../base/format-value";
import { openQuorum, type OpenStore } from "../late-store";
import type { WholeStore } from "../port";
import type { RedisAddress } from "../redis/address";
import type { RedisClient } from "../redis/client";
import { loadIoredis } from "../redis/ioredis";
import type { RedisClass } from "../redis/redis-class";
import { loadQuorum } from "./load-quorum";

/** The options of `quorumStore()`. */
export interface QuorumOptions {
  /**
   * The longest `lockTime` that a lock may have. A master does not count for this long after it starts. It must be the same in all
   * processes. Default `"1m"`.
   */
  readonly longestLockTime?: Duration;
}

/**
 * Returns a store that keeps locks in several independent Redis masters. A lock is held while a majority of them has it. Give all processes
 * the same masters, in the same order.
 *
 * @param masters at least three: ioredis clients of one node each, which you close yourself, or `redis://` URLs
 * @throws {LockOptionError} if one of them cannot be a master, or appears twice
 */
export function quorumStore(
  masters: readonly (RedisClient | RedisAddress)[],
  options: QuorumOptions = {},
): WholeStore {
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
