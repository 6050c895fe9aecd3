import type { AttributeName } from "./tag-attributes";

// Attributes of a lock that cannot be combined, in tags and in options alike.

/** An attribute with this value. Without a value: any value except the default. */
interface Attribute {
  readonly name: AttributeName;
  readonly value?: string;
}

/** Two attributes that one lock cannot have together. */
interface RefusedPair {
  readonly one: Attribute;
  readonly other: Attribute;
  readonly because: string;
  /** Only one place may not give both, with any values. If the places differ, the inner one replaces the attribute of the outer one. */
  readonly inOnePlace?: boolean;
}

const WHOLE_KEY = "`key` is the whole key";

/** The locks that may outlast their body. */
const KEPT = ["false", "onError"].map((value) => ({ name: "autoUnlock", value }) as const);

export const REFUSED_PAIRS: readonly RefusedPair[] = [
  ...(["retryTimes", "waitTime"] as const).map((name): RefusedPair => ({
    one: { name },
    other: { name: "wait" },
    because: "`wait` is the whole wait budget",
    inOnePlace: true,
  })),
  ...(["businessFlag", "keyName", "keyType", "keyClass", "fieldName"] as const).map((name): RefusedPair => ({
    one: { name },
    other: { name: "key" },
    because: WHOLE_KEY,
  })),
  { one: { name: "each", value: "true" }, other: { name: "key" }, because: WHOLE_KEY },
  ...KEPT.flatMap((other): readonly RefusedPair[] => [
    {
      one: { name: "lockAtLeast" },
      other,
      because: `with \`${formatAttribute(other)}\`, a lock lasts for its lock time anyway`,
    },
    {
      one: { name: "release", value: "background" },
      other,
      because:
        other.value === "false"
          ? "with `autoUnlock=false`, there is no release"
          : "with `autoUnlock=onError`, the caller waits for the end of the lock",
    },
  ]),
  {
    one: { name: "holdAtMost" },
    other: { name: "watchdog", value: "false" },
    because: "without a watchdog, a lock lasts at most its lock time",
  },
  {
    one: { name: "holdAtMost" },
    other: { name: "autoUnlock", value: "onError" },
    because: "after a body that succeeds, the lock lasts for one more lock time",
  },
  {
    one: { name: "lockAtLeast" },
    other: { name: "reentrant", value: "true" },
    because: "a reentrant call uses the lock of another call",
  },
  {
    one: { name: "each", value: "true" },
    other: { name: "fencing", value: "true" },
    because: "a fencing token belongs to one key, but `each` locks several",
  },
  ...KEPT.map((other): RefusedPair => ({
    one: { name: "each", value: "true" },
    other,
    because: "if one key is busy, the others must be released",
  })),
  {
    one: { name: "each", value: "true" },
    other: { name: "lockAtLeast" },
    because: "if one key is busy, the others must be released immediately",
  },
  ...(["lockAtLeast", "replicas"] as const).flatMap((name): readonly RefusedPair[] => [
    { one: { name }, other: { name: "mode", value: "read" }, because: `\`${name}\` needs an exclusive lock` },
    { one: { name }, other: { name: "permits" }, because: `\`${name}\` needs an exclusive lock` },
  ]),
];

/**
 * Returns the pairs of which both attributes are given.
 *
 * @param isGiven whether the attribute applies, wherever it comes from
 * @param isOwn whether the lock itself gives the attribute, and not the defaults
 */
export function refusedAmong(
  isGiven: (attribute: Attribute) => boolean,
  isOwn: (attribute: Attribute) => boolean,
): readonly RefusedPair[] {
  return REFUSED_PAIRS.filter(({ one, other, inOnePlace }) => {
    const counts = inOnePlace === true ? isOwn : isGiven;
    return counts(one) && counts(other);
  });
}

/** Returns the attributes of the defaults that the lock's own ones replace. */
export function replacedBy(isOwn: (attribute: Attribute) => boolean): readonly AttributeName[] {
  const pairs = REFUSED_PAIRS.filter(({ inOnePlace }) => inOnePlace === true);
  const replaced = pairs.filter(({ other }) => isOwn(other)).map(({ one }) => one.name);
  return replaced.concat(pairs.filter(({ one }) => isOwn(one)).map(({ other }) => other.name));
}

/** Formats an attribute as in a tag: `autoUnlock=false`. */
export function formatAttribute({ name, value }: Attribute): string {
  return value === undefined ? name : `${name}=${value}`;
}
