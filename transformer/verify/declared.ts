import { existsSync, readFileSync, statSync } from "node:fs";
import type { Parser, Source } from "../parser/parser";
import { declaredTags, tagsOfSource, type DeclaredTag } from "../read/declared-tags";
import { mayHaveTags } from "../read/spelling";
import { locksIn, type Lock } from "./locks/locks";
import { mappedSources } from "./source-maps";

/** Tags whose JavaScript does not contain their locks. */
export interface Unlocked {
  readonly javaScript: string;
  readonly tags: readonly DeclaredTag[];
}

/** Matches the refusal in the output of a woven build that reported an error. A function that could not be woven there throws. */
const HAS_REFUSAL = /: LW\d{4}: .*refuses to run unlocked\./;

/**
 * Compares the tags of a declaration file with the JavaScript next to it. A build that ignored the weave leaves the comments, and no locks.
 * If the file's source map leads to sources, their tags count, too, such as those of private members and those in removed comments.
 *
 * @param code the JavaScript, if it is known already
 */
export function unlockedByDeclarations(source: Source, code?: string): Unlocked | undefined {
  const { ts, file: declarations } = source;
  const declared = mayHaveTags(declarations.text) ? declaredTags(source) : [];
  const ofSources = mappedSources(declarations).flatMap(({ path }) => tagsInFile(ts, path));
  // Declarations may be older than their sources.
  const others = declared.filter(({ flag }) => ofSources.every((tag) => tag.flag !== flag));
  return unlockedOf(ts, [...ofSources, ...others], javaScriptBeside(declarations.fileName), code);
}

/** Returns the tags that the JavaScript does not lock, or `undefined` if there are none, or if there is no JavaScript. */
export function unlockedOf(
  ts: Parser,
  all: readonly DeclaredTag[],
  javaScript: string,
  known?: string,
): Unlocked | undefined {
  if (all.length === 0 || (known === undefined && !existsSync(javaScript))) return undefined;
  const code = known ?? readFileSync(javaScript, "utf8");
  if (HAS_REFUSAL.test(code)) return undefined;
  const tags = notLockedBy(all, locksIn(ts, javaScript, code).locks);
  return tags.length === 0 ? undefined : { javaScript, tags };
}

/**
 * Returns the tags that no file locks. A tag counts only if a file contains the name of its function, because a bundler leaves out unused
 * code. Returns `undefined` if there are no such tags, or no files.
 */
export function unlockedInAll(
  ts: Parser,
  all: readonly DeclaredTag[],
  files: readonly string[],
): Unlocked | undefined {
  let tags = all;
  for (const file of files) tags = unlockedOf(ts, tags, file)?.tags ?? [];
  const texts = files.map((file) => readFileSync(file, "utf8"));
  const named = tags.filter(({ name }) => {
    const called = name?.split(".").at(-1) ?? "";
    return texts.some((text) => text.includes(called));
  });
  const [javaScript] = files;
  return named.length === 0 || javaScript === undefined ? undefined : { javaScript, tags: named };
}

/** Returns the tags without a lock among these. */
export function notLockedBy(tags: readonly DeclaredTag[], locks: readonly Lock[]): DeclaredTag[] {
  return tags.filter(
    ({ tag, flag, name }) =>
      !locks.some(
        ({ tag: made, site, options }) =>
          made === tag &&
          (options.get("businessFlag") ?? options.get("key")) === flag &&
          (name === undefined || site === name),
      ),
  );
}

/** The tags of each source that was read. A build of many projects reads the sources of shared projects again and again. */
const tagsBySource = new Map<string, { readonly changedAt: number; readonly tags: readonly DeclaredTag[] }>();

export function tagsInFile(ts: Parser, source: string): readonly DeclaredTag[] {
  const changedAt = statSync(source, { throwIfNoEntry: false })?.mtimeMs;
  if (changedAt === undefined) return [];
  const found = tagsBySource.get(source);
  if (found?.changedAt === changedAt) return found.tags;
  const tags = tagsOfSource(ts, source, readFileSync(source, "utf8"));
  tagsBySource.set(source, { changedAt, tags });
  return tags;
}

function javaScriptBeside(declarations: string): string {
  return declarations.replace(/\.d\.([cm]?)ts$/, ".$1js");
}
