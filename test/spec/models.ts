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

/** Returns the definitions of the mutants. They must break the property itself, not only a step of the proof. */
const without = (...rules: readonly string[]): readonly (readonly string[])[] =>
  rules.map((rule) => ["ONLY_PROPERTY", rule]);

export const MODELS: Readonly<Record<string, Model>> = {
  lock: {
    searches: [[], ["LIVE=1", "SLEEP"], ["LIVE=1", "TOKENS"]],
    large: [["SLEEP"], ["TOKENS"], ["LIVE=3"]],
    mutants: [
      ...without(
        "ACQUIRE_BLINDLY",
        "BELIEF_FROM_REPLY",
        "CLOSED_BELIEVES",
        "FOUND_IS_GRANTED",
        "HAND_OFF_OVERLAPS",
        "HAND_OFF_RESTARTS",
        "LATE_RENEWAL_REVIVES",
        "NO_DRIFT",
        "RELEASE_BLINDLY",
        "RELEASE_FIRST",
        "RENEWAL_SHORTENS",
        "RESERVED_IS_GRANTED",
        "REUSED_ID",
        "REVOKED_IS_FREE",
      ),
      ["SLEEP", "ONLY_PROPERTY", "SLEEP_UNNOTICED"],
      ["TOKENS", "ONLY_PROPERTY", "TOKENS_WITHOUT_STRIDE"],
    ],
  },
  quorum: {
    searches: [[]],
    large: [["RESTARTS=2"]],
    mutants: [
      ["BELIEF_FROM_REPLY"],
      ["EARLY_VOTE"],
      ["NO_DRIFT"],
      ["ONE_VOTE"],
      ["RELEASE_FIRST"],
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
