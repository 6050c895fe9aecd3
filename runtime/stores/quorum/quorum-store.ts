import { systemClock } from "../../base/clock";
import { milliseconds, type Duration } from "../../base/duration";
import { LockOptionError } from "../../base/errors";
import { isOptions, readFrom, readOptions } from "../../base/options";
import { formatValue } from "../../base/format-value";
import { openQuorum, type OpenStore } from "../late-store";
import type { WholeStore } from "../port";
import type { RedisAddress } from "../redis/address";
import type { QuorumClient } from "../redis/client";
import type { LibraryLog } from "../load-library";
import { loadLibraries, type Libraries } from "../redis/load-library";
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
 * @param masters at least three: clients of ioredis, iovalkey, node-redis, or Bun for one node each, which you close yourself, or `redis://` URLs
 * @throws {LockOptionError} if one of them cannot be a master, or appears twice
 */
export function quorumStore(
  masters: readonly (QuorumClient | RedisAddress)[],
  options: QuorumOptions = {},
): WholeStore {
  return quorumStoreOf(masters, options);
}

/** Returns the same store as `quorumStore()`. `log` receives which client library the URLs use. */
export function quorumStoreOf(
  masters: readonly (QuorumClient | RedisAddress)[],
  options: QuorumOptions = {},
  log?: LibraryLog,
): WholeStore {
  const expected = (): LockOptionError =>
    new LockOptionError(
      `Expected quorumStore(masters) or quorumStore(masters, { longestLockTime: "1m" }), got ${formatValue(options)}`,
    );
  if (!isOptions(options)) throw expected();
  const { longestLockTime = "1m" } = readOptions(options, ["longestLockTime"], expected);
  const longestLockTimeMs = milliseconds("longestLockTime", longestLockTime, 100);
  const { QuorumStore, redisMasters } = loadQuorum();
  const { libraries, open } = readFrom("The list of masters", () => redisMasters(masters));
  const openStore = (loaded: Libraries): OpenStore => {
    const members = readFrom("The list of masters", () => open(loaded));
    return new QuorumStore(members, systemClock, longestLockTimeMs);
  };
  return openQuorum(loadLibraries(libraries, log), openStore);
}
