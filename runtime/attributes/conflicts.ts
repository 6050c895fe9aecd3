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
}

const WHOLE_KEY = "`key` is the whole key";

export const REFUSED_PAIRS: readonly RefusedPair[] = [
  ...(["businessFlag", "keyName", "keyType", "keyClass", "fieldName"] as const).map((name): RefusedPair => ({
    one: { name },
    other: { name: "key" },
    because: WHOLE_KEY,
  })),
  { one: { name: "each", value: "true" }, other: { name: "key" }, because: WHOLE_KEY },
  {
    one: { name: "lockAtLeast" },
    other: { name: "autoUnlock", value: "false" },
    because: "with `autoUnlock=false`, a lock lasts for its lock time anyway",
  },
  {
    one: { name: "release", value: "background" },
    other: { name: "autoUnlock", value: "false" },
    because: "with `autoUnlock=false`, there is no release",
  },
  {
    one: { name: "holdAtMost" },
    other: { name: "watchdog", value: "false" },
    because: "without a watchdog, a lock lasts at most its lock time",
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
  {
    one: { name: "each", value: "true" },
    other: { name: "autoUnlock", value: "false" },
    because: "if one key is busy, the others must be released",
  },
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

/** Returns the pairs of which both attributes are given. */
export function refusedAmong(isGiven: (attribute: Attribute) => boolean): readonly RefusedPair[] {
  return REFUSED_PAIRS.filter(({ one, other }) => isGiven(one) && isGiven(other));
}

/** Formats an attribute as in a tag: `autoUnlock=false`. */
export function formatAttribute({ name, value }: Attribute): string {
  return value === undefined ? name : `${name}=${value}`;
}
