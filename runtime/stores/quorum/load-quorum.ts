import type * as Quorum from "./quorum";
import type * as RedisMember from "./redis-member";

type Loaded = Pick<typeof Quorum, "QuorumStore"> & Pick<typeof RedisMember, "redisMasters">;

/**
 * Loads the files of quorums only when the first quorum is created, because there are many, and most programs need none. The ES module has
 * `load-quorum.mts` in place of this file.
 */
export function loadQuorum(): Loaded {
  const { QuorumStore } = require("./quorum") as typeof Quorum;
  const { redisMasters } = require("./redis-member") as typeof RedisMember;
  return { QuorumStore, redisMasters };
}
