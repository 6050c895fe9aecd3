import { QuorumStore } from "./quorum.js";
import { redisMasters } from "./redis-member.js";

/** Nothing can load late here: `quorumStore()` returns immediately, and a bundle has no files beside it. */
export function loadQuorum() {
  return { QuorumStore, redisMasters };
}
