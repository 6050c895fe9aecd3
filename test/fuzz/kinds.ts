import type { RandomProgram } from "./random-program";

/** Constructs that a lock around the body could affect. Many programs must contain each of them. */
const KINDS: Readonly<Record<string, RegExp>> = {
  "`for...of` over a generator": /for \(const \w+ of world\.cursor/,
  "`for await`": /for await \(/,
  "`using` in the head of a loop": /for \((?:await )?using /,
  "`using`": /\busing (?!i\d)/,
  "a loop that holds the one connection of a pool": /of world\.(?:borrow|lease)\(/,
  "a `return` of a query from that loop": /return world\.query\(/,
  "a getter that does work": /\.balance|\bget then\(/,
  "a generator with `finally` inside": /function\*[^]*finally/,
  "`finally`": /\bfinally\b/,
  "a thenable that starts when it is awaited": /world\.lazy\(|\bthen\(resolve\)/,
  "a reentrant lock": /reentrant=true/,
  "a shared lock": /mode=read|permits=/,
  "a lock of several keys": /each=true/,
  "a lock with a whole key": /key="/,
  "a conditional lock": /when="/,
  "a release in the background": /release=background/,
};

const GENERATOR = "a generator as the locked function";
const GENERATOR_WITH_FINALLY = "a generator with `finally` as the locked function";

export function kindsOf({ source, isGenerator }: RandomProgram): string[] {
  const found = Object.entries(KINDS).flatMap(([kind, pattern]) => (pattern.test(source) ? [kind] : []));
  const generator = isGenerator ? [GENERATOR] : [];
  return [
    ...found,
    ...generator,
    ...(isGenerator && /\bfinally\b/.test(source) ? [GENERATOR_WITH_FINALLY] : []),
  ];
}

export const ALL_KINDS: readonly string[] = [...Object.keys(KINDS), GENERATOR, GENERATOR_WITH_FINALLY];
