import { decode } from "@jridgewell/sourcemap-codec";
import { readFileSync, statSync } from "node:fs";
import type { Parser } from "../parser/parser";
import { tagsOfSource, type DeclaredTag } from "../read/declared-tags";
import { mayHaveTags } from "../read/spelling";
import { lineStarts } from "../text/line-starts";
import { unlockedByDeclarations, unlockedOf, type Unlocked } from "./declared";
import { functionsIn } from "./functions-in";
import { sourceMapOf, type MappedSource } from "./source-maps";

/**
 * Returns the tags of a file that its code does not lock. JavaScript that was built without the weave has no locks, although there are tags
 * in its own comments, in the declarations next to it, or in its sources. Without a tag, the cost is a lookup of the declarations and the
 * sources, and a search in their text.
 */
export function unlockedIn(ts: Parser, path: string, code: string): Unlocked | undefined {
  return (
    unlockedByTags(ts, path, code) ?? (isJavaScript(path) ? unlockedBySources(ts, path, code) : undefined)
  );
}

/** Returns the tags in its own comments, and in the declarations next to it, that its code does not lock. */
export function unlockedByTags(ts: Parser, path: string, code: string): Unlocked | undefined {
  const built = isJavaScript(path) ? byDeclarations(ts, path, code) : undefined;
  return built ?? byItself(ts, path, code);
}

function isJavaScript(path: string): boolean {
  return /\.[cm]?jsx?$/.test(path);
}

function byDeclarations(ts: Parser, path: string, code: string): Unlocked | undefined {
  const name = path.replace(/\.([cm]?)jsx?$/, ".d.$1ts");
  if (!isFile(name)) return undefined;
  const text = readFileSync(name, "utf8");
  if (!mayHaveTags(text)) return undefined;
  return unlockedByDeclarations({ ts, file: ts.createSourceFile(name, text, ts.ScriptTarget.Latest) }, code);
}

function byItself(ts: Parser, path: string, code: string): Unlocked | undefined {
  return mayHaveTags(code) ? unlockedOf(ts, tagsOfSource(ts, path, code), path, code) : undefined;
}

/** Compares the code with the tags of its sources, because a compiler may have removed the comments. */
export function unlockedBySources(ts: Parser, path: string, code: string): Unlocked | undefined {
  const { sources, mappings } = sourceMapOf({ fileName: path, text: code });
  const tags = sources.flatMap((source, index) => {
    const text = textOf(source);
    if (text === undefined || !mayHaveTags(text)) return [];
    const all = tagsOfSource(ts, source.path, text);
    const offsets = offsetsIn(mappings, index, text);
    return sources.length === 1 && offsets.size === 0
      ? tagsByName(all, functionsIn(ts, source.path, text), functionsIn(ts, path, code))
      : tagsWithCode(all, text, offsets);
  });
  return unlockedOf(ts, tags, path, code);
}

/** Returns the text of a source. A production image often contains only the map. */
function textOf({ path, content }: MappedSource): string | undefined {
  return isFile(path) ? readFileSync(path, "utf8") : content;
}

/** Returns the tags whose functions are in the code. A bundler drops unused functions, so the absence of their locks proves nothing. */
function tagsWithCode(
  tags: readonly DeclaredTag[],
  text: string,
  offsets: ReadonlySet<number>,
): DeclaredTag[] {
  return tags.filter(({ body: { start, end } = { start: 0, end: text.length } }) =>
    [...offsets].some((offset) => start <= offset && offset < end),
  );
}

/**
 * Returns the tags whose functions may be in the code, if the map has no positions. A function with another name, or without one, may be any
 * function of the source that a minifier renamed. So the absence of a name counts only if the code has no such function.
 */
function tagsByName(
  tags: readonly DeclaredTag[],
  inSource: ReadonlySet<string>,
  inCode: ReadonlySet<string>,
): readonly DeclaredTag[] {
  if ([...inCode].some((name) => name === "" || !inSource.has(name))) return tags;
  return tags.filter(({ name = "" }) => {
    const own = name.slice(name.lastIndexOf(".") + 1);
    return inCode.has(own) || (inCode.size > 0 && !inSource.has(own));
  });
}

/** Returns the offsets in a source that a map leads to. */
function offsetsIn(mappings: string, source: number, text: string): Set<number> {
  const lines = lineStarts(text);
  const offsets = new Set<number>();
  for (const segments of decode(mappings)) {
    for (const [, at, line, column] of segments) {
      const start = line === undefined ? undefined : lines[line];
      if (at === source && start !== undefined && column !== undefined) offsets.add(start + column);
    }
  }
  return offsets;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
