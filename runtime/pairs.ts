// Which of a lock's attributes do not go together: the same for tags and by hand.

/** An attribute with that value; without one, with any but its default. */
interface Said {
  readonly name: string;
  readonly value?: string;
}

/** Two that cannot be said of one lock. */
interface RefusedPair {
  readonly one: Said;
  readonly other: Said;
  readonly because: string;
}

const OF_ONE_ALONE = "it is for a key that is held by one alone";

const A_WHOLE = "a `key` is the whole of one";

const REFUSED_PAIRS: readonly RefusedPair[] = [
  ...["businessFlag", "keyName", "keyType", "keyClass", "fieldName"].map((name): RefusedPair => ({
    one: { name },
    other: { name: "key" },
    because: A_WHOLE,
  })),
  { one: { name: "each", value: "true" }, other: { name: "key" }, because: A_WHOLE },
  {
    one: { name: "lockAtLeast" },
    other: { name: "autoUnlock", value: "false" },
    because: "a key that is left to expire stays for its lock time in any case",
  },
  {
    one: { name: "release", value: "background" },
    other: { name: "autoUnlock", value: "false" },
    because: "a key that is left to expire is not released",
  },
  {
    one: { name: "holdAtMost" },
    other: { name: "watchdog", value: "false" },
    because: "what is not renewed is held for its lock time at most",
  },
  {
    one: { name: "lockAtLeast" },
    other: { name: "reentrant", value: "true" },
    because: "who enters again comes and goes inside another one's hold",
  },
  {
    one: { name: "each", value: "true" },
    other: { name: "fencing", value: "true" },
    because: "a token belongs to one key, and here are several",
  },
  {
    one: { name: "each", value: "true" },
    other: { name: "autoUnlock", value: "false" },
    because: "keys that are had, where another one is not, have to be given back",
  },
  {
    one: { name: "each", value: "true" },
    other: { name: "lockAtLeast" },
    because: "keys that are had, where another one is not, have to be free at once",
  },
  ...["lockAtLeast", "replicas"].flatMap((name): readonly RefusedPair[] => [
    { one: { name }, other: { name: "mode", value: "read" }, because: OF_ONE_ALONE },
    { one: { name }, other: { name: "permits" }, because: OF_ONE_ALONE },
  ]),
];

/** The pairs of which both are said. */
export function refusedAmong(isSaid: (said: Said) => boolean): readonly RefusedPair[] {
  return REFUSED_PAIRS.filter(({ one, other }) => isSaid(one) && isSaid(other));
}

/** In the words of the tag: `autoUnlock=false`. */
export function wordsOf({ name, value }: Said): string {
  return value === undefined ? name : `${name}=${value}`;
}
