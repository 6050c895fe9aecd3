import { systemClock } from "../../clock";
import { milliseconds, type Duration } from "../../duration";
import { LockOptionError } from "../../errors";
import { isOptions, readFrom, readOptions } from "../../options";
import { shown } from "../../shown";
import type { Store } from "../port";
import type { RedisAddress } from "../redis/address";
import type { RedisClient } from "../redis/client";
import type * as Quorum from "./quorum";
import type * as RedisMember from "./redis-member";

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
      `Expected quorumStore(masters) or quorumStore(masters, { longestLockTime: "1m" }), got ${shown(options)}`,
    );
  if (!isOptions(options)) throw expected();
  const { longestLockTime = "1m" } = readOptions(options, ["longestLockTime"], expected);
  const longestLockTimeMs = milliseconds("longestLockTime", longestLockTime, 100);
  // Its many files wait for the first that is asked for: most programs have none.
  const { QuorumStore } = require("./quorum") as typeof Quorum;
  const { redisMembers } = require("./redis-member") as typeof RedisMember;
  const members = readFrom("The list of masters", () => redisMembers(masters));
  return new QuorumStore(members, systemClock, longestLockTimeMs);
}
