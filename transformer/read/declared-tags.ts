import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./comments";
import { findJoinPoints } from "./join-points";
import { declaredFunctionAt } from "./tagged-node";
import { mayHaveTags } from "./spelling";
import { parseTags, type Item, type Tag } from "./tag";
import { kindOf, templateIn } from "./template";

/** A tag, and the facts about its lock that do not need the body of its function. */
export interface DeclaredTag extends Span {
  /** The business flag, or the text of a whole key without its values. */
  readonly flag: string;
  /** The name of the function, or `undefined` if declarations give it another name or none. */
  readonly name: string | undefined;
  /** The body of the function, or `undefined` in declarations. */
  readonly body: Span | undefined;
}

/** Returns the tags in a declaration file, where no function has a body. */
export function declaredTags(ts: Parser, declarations: TS.SourceFile): DeclaredTag[] {
  return [...commentsThatMentionIt(ts, declarations)].flatMap(({ comment, path }) => {
    const { tags, problems } = parseTags(declarations.text, comment);
    if (problems.length > 0) return []; // The build of the declaring project reports these.
    const name = declaredFunctionAt(ts, declarations, comment, path);
    return tags.flatMap((tag) => declaredTag(ts, declarations, tag, name, undefined));
  });
}

/** Returns the same for a source file, including tags of functions that its declarations do not show. */
export function tagsOfSource(ts: Parser, fileName: string, text: string): DeclaredTag[] {
  if (!mayHaveTags(text)) return [];
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  const { points } = findJoinPoints(ts, file);
  return points.flatMap(({ fn, tag, name, flaw }) => {
    const body = { start: fn.body.getStart(file), end: fn.body.end };
    return flaw === undefined ? declaredTag(ts, file, tag, name, body) : [];
  });
}

function declaredTag(
  ts: Parser,
  file: TS.SourceFile,
  { word: { start, end }, attributes }: Tag,
  name: string | undefined,
  body: Span | undefined,
): DeclaredTag[] {
  const valueOf = (attribute: string): Item | undefined =>
    attributes.find((each) => each.name.text === attribute)?.items[0];
  const key = valueOf("key");
  const flag = valueOf("businessFlag")?.text ?? (key && kindOf(templateIn(ts, key, file)));
  return flag === undefined ? [] : [{ start, end, flag, name, body }];
}
