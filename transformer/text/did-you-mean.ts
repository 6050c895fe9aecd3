import { distance } from "fastest-levenshtein";

/** Returns the name that is most similar to the text, or `undefined` if none is similar. */
export function nearest(found: string, names: readonly string[]): string | undefined {
  const lowered = found.toLowerCase();
  const [first] = names
    .map((name) => ({ name, far: distance(lowered, name.toLowerCase()) }))
    .filter(({ name, far }) => far <= Math.max(1, Math.floor(Math.max(found.length, name.length) / 3)))
    .toSorted((a, b) => a.far - b.far);
  return first?.name;
}

/** Returns ` Did you mean ...?` if one of the names is similar to the text, and an empty string otherwise. */
export function didYouMean(found: string, names: readonly string[]): string {
  return suggestion(nearest(found, names));
}

/** Returns ` Did you mean ...?` for the name, and an empty string if there is none. */
export function suggestion(name: string | undefined): string {
  return name === undefined ? "" : ` Did you mean \`${name}\`?`;
}

/** Returns ` Did you mean ...?`, or a list of all names if none is similar. */
export function nearestOrAll(found: string, names: readonly string[]): string {
  return didYouMean(found, names) || ` Expected one of ${names.map((name) => `\`${name}\``).join(", ")}.`;
}

/** Returns the suggestion at the end of a message from the compiler. */
export function suggestionIn(message: string): string | undefined {
  return / Did you mean '([^']+)'\?$/.exec(message)?.[1];
}
