import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./comments";
import { findJoinPoints } from "./join-points";
import { declaredFunctionAt } from "./tagged-node";
import { mayHaveTags } from "./spelling";
import { parseTags, type Item, type Tag } from "./tag";
import { kindOf, templateIn } from "./template";

/** A tag, and what is known of its lock without its function's body. */
export interface DeclaredTag extends Span {
  /** The business flag, or of a whole key what is the same whatever its values are. */
  readonly flag: string;
  /** Of the function; `undefined` where declarations have another name for it, or none. */
  readonly name: string | undefined;
}

/** The tags in a declaration file, where no function has a body. */
export function declaredTags(ts: Parser, declarations: TS.SourceFile): DeclaredTag[] {
  return [...commentsThatMentionIt(ts, declarations)].flatMap(({ comment, path }) => {
    const { tags, problems } = parseTags(declarations.text, comment);
    if (problems.length > 0) return []; // Of its own project to tell.
    const name = declaredFunctionAt(ts, declarations, comment, path);
    return tags.flatMap((tag) => declaredTag(ts, declarations, tag, name));
  });
}

/** The same of a source file: the tags of functions that declarations do not show, too. */
export function tagsOfSource(ts: Parser, fileName: string, text: string): DeclaredTag[] {
  if (!mayHaveTags(text)) return [];
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  const { points } = findJoinPoints(ts, file);
  return points.flatMap(({ tag, name, flaw }) =>
    flaw === undefined ? declaredTag(ts, file, tag, name) : [],
  );
}

function declaredTag(
  ts: Parser,
  file: TS.SourceFile,
  { word: { start, end }, attributes }: Tag,
  name: string | undefined,
): DeclaredTag[] {
  const valueOf = (attribute: string): Item | undefined =>
    attributes.find((each) => each.name.text === attribute)?.items[0];
  const key = valueOf("key");
  const flag = valueOf("businessFlag")?.text ?? (key && kindOf(templateIn(ts, key, file)));
  return flag === undefined ? [] : [{ start, end, flag, name }];
}
