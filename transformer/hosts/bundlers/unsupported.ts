import { readFileSync, statSync } from "node:fs";
import { UNSUPPORTED, type Unsupported } from "../../../runtime/unsupported";
import { parser } from "../../parser/parser";
import { tagsOfSource } from "../../read/declared-tags";
import { problem } from "../../text/problems";
import type { Span } from "../../text/span";
import { notLockedBy } from "../../verify/declared";
import { locksIn, type Lock } from "../../verify/locks";
import { findingIn, type Finding } from "../one-file/weaver";
import { SOURCE_FILES } from "./source-files";

// For browsers and edge runtimes, bundlers take an entry of the runtime that throws at its import. If that entry has code in the output, then
// its importers run there, too. The options of a build do not say so: frameworks remove the server's code from what
// they build for browsers, after the plugin has woven it.

const ENTRY = /[\\/]dist[\\/]runtime[\\/](?:\w+\.)?not-in-(browser|edge|workers)\.m?js$/;

/** Returns the place whose entry this module is, if it is one that throws. */
export function refusedPlace(path: string): Unsupported | undefined {
  return ENTRY.exec(path)?.[1] as Unsupported | undefined;
}

/** Where a file imports the runtime by hand. */
const IMPORT = /(["'])lockweave(?:\/(?:runtime|testing|opentelemetry))?\1/;

/** How a bundler proves that a file's locks are in the output. */
export interface Evidence {
  /** The code that became of the file. Without it, all locks of the file count. */
  readonly codes?: readonly string[];
  /** Whether an `import()` of the entry is in the output, too. It may never run, and other imports may be unused. */
  readonly isImportedDynamically: boolean;
}

/**
 * What of a file is in the output, and cannot run in this place: its tagged functions, or else its import.
 *
 * @param path of a file that may not exist
 */
export function unsupportedIn(path: string, place: Unsupported, evidence: Evidence): Finding[] {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const text = readFileSync(path, "utf8");
  const { where, why, fix } = UNSUPPORTED[place];
  const { codes, isImportedDynamically } = evidence;
  const tags = SOURCE_FILES.test(path) ? tagsOfSource(parser(), path, text) : [];
  const unlocked = codes === undefined ? [] : notLockedBy(tags, locksOf(path, codes));
  const found: { readonly span: Span; readonly name: string }[] = tags
    .filter((tag) => !unlocked.includes(tag))
    .map((tag) => ({ span: tag, name: tag.name ?? tag.flag }));
  const [words] = IMPORT.exec(text) ?? [];
  if (found.length === 0 && words !== undefined && !isImportedDynamically) {
    const start = text.indexOf(words);
    found.push({ span: { start, end: start + words.length }, name: words.slice(1, -1) });
  }
  return found.map(({ span, name }) =>
    findingIn(text, problem("unsupportedPlace", span, name, where, why, fix)),
  );
}

function locksOf(path: string, codes: readonly string[]): Lock[] {
  return codes.flatMap((code) => locksIn(parser(), path, code).locks);
}
