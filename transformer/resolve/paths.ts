import { dirname, join, resolve } from "node:path";

// The setting `paths` of tsconfig.json, for a compiler that has no API to resolve an import.

/** An entry of `paths` with absolute targets. */
interface Pattern {
  readonly before: string;
  /** `undefined` if the name has no `*`. */
  readonly after: string | undefined;
  readonly targets: readonly string[];
}

/** Returns the patterns in TypeScript's order of preference: names without `*` first, then those with the longest prefix. */
export function patternsIn(paths: unknown, base: string): Pattern[] {
  const all = Object.entries((paths ?? {}) as Readonly<Record<string, readonly string[]>>);
  return all
    .map(([name, targets]): Pattern => {
      const [before = "", after] = name.split("*");
      return { before, after, targets: [targets].flat().map((target) => resolve(base, target)) };
    })
    .toSorted(
      (one, other) =>
        Number(one.after !== undefined) - Number(other.after !== undefined) ||
        other.before.length - one.before.length,
    );
}

/** Returns the files that a specifier may mean, the most likely first. */
export function filesByPaths(specifier: string, importer: string, patterns: readonly Pattern[]): string[] {
  const targets = specifier.startsWith(".")
    ? [resolve(dirname(importer), specifier)]
    : targetsOf(specifier, patterns);
  return targets.flatMap((target) => spellings(target));
}

function targetsOf(specifier: string, patterns: readonly Pattern[]): string[] {
  for (const { before, after, targets } of patterns) {
    if (after === undefined) {
      if (specifier === before) return [...targets];
    } else if (
      specifier.length >= before.length + after.length &&
      specifier.startsWith(before) &&
      specifier.endsWith(after)
    ) {
      const star = specifier.slice(before.length, specifier.length - after.length);
      return targets.map((target) => target.replace("*", () => star));
    }
  }
  return [];
}

const ENDINGS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];

/** Returns the files that an import of this path may resolve to. */
function spellings(path: string): string[] {
  const asTypeScript = path.replace(/\.([cm]?)js(x?)$/, ".$1ts$2");
  return [
    asTypeScript,
    asTypeScript.replace(/\.ts$/, ".tsx"),
    path,
    ...ENDINGS.map((ending) => path + ending),
    ...ENDINGS.map((ending) => join(path, `index${ending}`)),
  ];
}
