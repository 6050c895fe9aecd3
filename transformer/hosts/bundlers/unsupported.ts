import { readFileSync, statSync } from "node:fs";
import { UNSUPPORTED, type Unsupported } from "../../../runtime/base/unsupported";
import { parser } from "../../parser/parser";
import { tagsOfSource } from "../../read/declared-tags";
import { problem } from "../../text/problems";
import type { Span } from "../../text/span";
import { notLockedBy } from "../../verify/declared";
import { locksIn, type Lock } from "../../verify/locks/locks";
import { findingIn, type Finding } from "../one-file/weaver";
import { SOURCE_FILES } from "./source-files";

// For browsers and edge runtimes, bundlers choose an entry of the runtime that throws when it is imported. If the output contains code of
// that entry, its importers run there, too. The build options do not reveal that, because frameworks remove the server's code from their
// browser builds after the plugin has woven it.

const ENTRY = /[\\/]dist[\\/]runtime[\\/](?:\w+\.)?not-in-(browser|edge|workers)\.m?js$/;

/** Returns the environment if the module is the entry that throws there. */
export function refusedPlace(path: string): Unsupported | undefined {
  return ENTRY.exec(path)?.[1] as Unsupported | undefined;
}

/** Matches an import of the runtime in the sources. */
const IMPORT = /(["'])lockweave(?:\/(?:runtime|testing|opentelemetry|cron|nest))?\1/;

/** The evidence that a file's locks are in the output. */
export interface Evidence {
  /** The output code that contains the file. Without it, all locks of the file count. */
  readonly codes?: readonly string[];
  /** Whether the output also imports the entry with `import()`. That import may never run, and static imports may be unused. */
  readonly isImportedDynamically: boolean;
}

/**
 * Returns the parts of a file that are in the output but cannot run in this environment: its tagged functions, or its import of the runtime
 * if there are none.
 *
 * @param path the path of a file that may not exist
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
