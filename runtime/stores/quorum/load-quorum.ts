import type * as Quorum from "./quorum";
import type * as RedisMember from "./redis-member";

type Loaded = Pick<typeof Quorum, "QuorumStore"> & Pick<typeof RedisMember, "redisMasters">;

/** Most programs have no quorum, so its many files load with the first one. The ES module has `load-quorum.mts` in place of this file. */
export function loadQuorum(): Loaded {
  const { QuorumStore } = require("./quorum") as typeof Quorum;
  const { redisMasters } = require("./redis-member") as typeof RedisMember;
  return { QuorumStore, redisMasters };
}
