/** A model, by the name of its file. */
export interface Model {
  /** Whether it claims that something happens eventually, instead of asserting something in each state. */
  readonly isLiveness?: boolean;
  /** What is defined in each search that must find no error. */
  readonly searches: readonly (readonly string[])[];
  /** The same for searches with larger bounds. */
  readonly large: readonly (readonly string[])[];
  /** What is defined in each search that must find an error. The last name removes a rule. */
  readonly mutants: readonly (readonly string[])[];
}

/**
 * Returns the definitions of mutants. Each removes one rule from a search that finds no error, so the missing rule is the cause of its error.
 * It must break the property itself, not only a step of the proof.
 */
const without = (search: readonly string[], ...rules: readonly string[]): readonly (readonly string[])[] =>
  rules.map((rule) => search.concat("ONLY_PROPERTY", rule));

const SLEEP = ["LIVE=1", "SLEEP"];
const TOKENS = ["LIVE=1", "TOKENS"];
const VERDICT = ["LIVE=1", "VERDICT"];

export const MODELS: Readonly<Record<string, Model>> = {
  lock: {
    searches: [[], SLEEP, TOKENS, VERDICT],
    large: [["SLEEP"], ["TOKENS"], ["VERDICT"], ["LIVE=3"]],
    mutants: [
      ...without(
        [],
        "ACQUIRE_BLINDLY",
        "BELIEF_FROM_REPLY",
        "CLOSED_BELIEVES",
        "DEQUEUE_BLINDLY",
        "FOUND_IS_GRANTED",
        "HAND_OFF_OVERLAPS",
        "HAND_OFF_RESTARTS",
        "LATE_RENEWAL_REVIVES",
        "NO_DRIFT",
        "RELEASE_BLINDLY",
        "RELEASE_FIRST",
        "RENEWAL_FROM_REPLY",
        "RENEWAL_SHORTENS",
        "RENEW_BLINDLY",
        "RESERVED_IS_GRANTED",
        "RESERVE_BLINDLY",
        "REUSED_ID",
        "REVOKED_IS_FREE",
        "REVOKE_BLINDLY",
        "STORE_FORGETS",
      ),
      ...without(SLEEP, "SLEEP_UNNOTICED"),
      ...without(TOKENS, "TOKENS_RESENT", "TOKENS_WITHOUT_STRIDE"),
      ...without(VERDICT, "VERDICT_OF_ANY_GRANT"),
    ],
  },
  quorum: {
    searches: [[]],
    large: [["RESTARTS=2"]],
    mutants: [
      ["BELIEF_FROM_REPLY"],
      ["EARLY_RENEWAL"],
      ["EARLY_VOTE"],
      ["NO_DRIFT"],
      ["ONE_VOTE"],
      ["RELEASE_FIRST"],
      ["RENEWAL_FROM_REPLY"],
      ["RENEWED_AFTER_RELEASE"],
      ["ROLLED_BACK_BELIEVES"],
    ],
  },
  shared: {
    searches: [[]],
    large: [["LIMIT=3"]],
    mutants: [
      ["JOINS_WITHOUT_ROOM"],
      ["MODES_MIXED"],
      ["PERMITS_UNCOUNTED"],
      ["REDUCED_IGNORED"],
      ["RELEASED_WITH_CALLERS"],
      ["ROOM_STAYS"],
      ["WRITERS_SHARE"],
    ],
  },
  liveness: {
    isLiveness: true,
    searches: [[]],
    large: [["LOSSES=3"]],
    mutants: [["HELD_FOREVER"], ["POLLS_SELDOM"], ["RESERVED_FOREVER"], ["WITHOUT_POLLING"]],
  },
  guard: {
    searches: [[]],
    large: [],
    mutants: [
      ["GUARD_ONLY_READS"],
      ["GUARD_WITHOUT_ROW"],
      ["LOCKED_ROW_RELEASED"],
      ["LOCKED_ROW_REMOVED"],
      ["UPDATED_IN_PLACE"],
    ],
  },
};
