import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { declaredTags, tagsOfSource, type DeclaredTag } from "../read/declared-tags";
import { mayHaveTags } from "../read/spelling";
import { locksIn, type Lock } from "./locks";

/** Tags whose JavaScript does not hold their locks. */
export interface Unlocked {
  readonly javaScript: string;
  readonly tags: readonly DeclaredTag[];
}

/** Its own build was woven and has told of an error: what could not be woven there refuses to run. */
const HAS_REFUSAL = /: LW\d{4}: .*refuses to run unlocked\./;

/**
 * Holds the tags of a declaration file against the JavaScript beside it: a build that ignored the weave left the
 * comments and no locks. Where its map leads to sources, their tags count, too: those of private members, and those
 * in comments that were taken out.
 *
 * @param code the JavaScript, where it is known already
 */
export function unlockedIn(ts: Parser, declarations: TS.SourceFile, code?: string): Unlocked | undefined {
  const declared = mayHaveTags(declarations.text) ? declaredTags(ts, declarations) : [];
  const ofSources = mappedSources(declarations).flatMap((source) => tagsInFile(ts, source));
  // Declarations may be older than their sources.
  const others = declared.filter(({ flag }) => ofSources.every((tag) => tag.flag !== flag));
  return unlockedOf(ts, [...ofSources, ...others], javaScriptBeside(declarations.fileName), code);
}

/** Those of the tags that the JavaScript does not lock. Nothing is known where there is none. */
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
 * Those of the tags that no file locks, though one of them names the function: a bundler leaves out what nobody exports.
 * Nothing is known where there are no files.
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

/** The tags that none of these locks is made of. */
export function notLockedBy(tags: readonly DeclaredTag[], locks: readonly Lock[]): DeclaredTag[] {
  return tags.filter(
    ({ flag, name }) =>
      !locks.some(
        ({ site, options }) =>
          (options.get("businessFlag") ?? options.get("key")) === flag &&
          (name === undefined || site === name),
      ),
  );
}

/** A build of many projects looks at the sources of the lower ones again and again. */
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

const MAP = /\n\/\/# sourceMappingURL=(\S+\.map)\s*$/;
const LONGEST_NAME = 1_000;

/** What a file was made of. Installed packages have maps, too, but seldom their sources, and are many. */
export function mappedSources({ fileName, text }: Pick<TS.SourceFile, "fileName" | "text">): string[] {
  const [, name] = /[\\/]node_modules[\\/]/.test(fileName) ? [] : (MAP.exec(text.slice(-LONGEST_NAME)) ?? []);
  const map = name === undefined ? "" : resolve(dirname(fileName), name);
  if (!existsSync(map)) return [];
  const { sourceRoot, sources } = sourceMapIn(readFileSync(map, "utf8"));
  return sources.map((source) => resolve(dirname(map), sourceRoot, source));
}

function sourceMapIn(text: string): { readonly sourceRoot: string; readonly sources: readonly string[] } {
  const none = { sourceRoot: "", sources: [] };
  try {
    return { ...none, ...(JSON.parse(text) as object) };
  } catch {
    return none;
  }
}

function javaScriptBeside(declarations: string): string {
  return declarations.replace(/\.d\.([cm]?)ts$/, ".$1js");
}
