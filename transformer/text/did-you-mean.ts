import { distance } from "fastest-levenshtein";

/** Returns ` Did you mean ...?` if one of the names is similar to the text, and an empty string otherwise. */
export function didYouMean(found: string, names: readonly string[]): string {
  const lowered = found.toLowerCase();
  const [nearest] = names
    .map((name) => ({ name, far: distance(lowered, name.toLowerCase()) }))
    .filter(({ name, far }) => far <= Math.max(1, Math.floor(Math.max(found.length, name.length) / 3)))
    .toSorted((a, b) => a.far - b.far);
  return nearest === undefined ? "" : ` Did you mean \`${nearest.name}\`?`;
}

/** Returns the same, or a list of all names if none is similar. */
export function nearestOrAll(found: string, names: readonly string[]): string {
  return didYouMean(found, names) || ` There are ${names.map((name) => `\`${name}\``).join(", ")}.`;
}

/** Returns the suggestion at the end of a message from {@link didYouMean}, or from the compiler, which uses the same words. */
export function meantIn(message: string): string | undefined {
  return / Did you mean [`']([^`']+)[`']\?$/.exec(message)?.[1];
}
