import { distance } from "fastest-levenshtein";

/** ` Did you mean ...?`, when one of the names is near enough to what was written. */
export function didYouMean(found: string, names: readonly string[]): string {
  const lowered = found.toLowerCase();
  const [nearest] = names
    .map((name) => ({ name, far: distance(lowered, name.toLowerCase()) }))
    .filter(({ name, far }) => far <= Math.max(1, Math.floor(Math.max(found.length, name.length) / 3)))
    .toSorted((a, b) => a.far - b.far);
  return nearest === undefined ? "" : ` Did you mean \`${nearest.name}\`?`;
}

/** The same, or all that there is. */
export function nearestOrAll(found: string, names: readonly string[]): string {
  return didYouMean(found, names) || ` There are ${names.map((name) => `\`${name}\``).join(", ")}.`;
}

/** What a message takes for meant that ends with {@link didYouMean}, or with the compiler's own such words. */
export function meantIn(message: string): string | undefined {
  return / Did you mean [`']([^`']+)[`']\?$/.exec(message)?.[1];
}
