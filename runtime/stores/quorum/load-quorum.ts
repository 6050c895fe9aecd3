import type * as Quorum from "./quorum";
import type * as RedisMember from "./redis-member";

type Loaded = Pick<typeof Quorum, "QuorumStore"> & Pick<typeof RedisMember, "redisMasters">;

/**
 * Loads the many files of a quorum with the first one, because most programs have none. The ES module has `load-quorum.mts` in place of
 * this file.
 */
export function loadQuorum(): Loaded {
  const { QuorumStore } = require("./quorum") as typeof Quorum;
  const { redisMasters } = require("./redis-member") as typeof RedisMember;
  return { QuorumStore, redisMasters };
}
