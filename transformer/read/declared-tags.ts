import type { Parser, Source } from "../parser/parser";
import type { Span } from "../text/span";
import { commentsThatMentionIt, findJoinPoints } from "./join-points";
import { declaredFunctionAt } from "./tagged-node";
import { mayHaveTags, type TagName } from "./spelling";
import { parseTags, type Item, type Tag } from "./tag";
import { kindOf, templateIn } from "./template";

/** A tag, and the facts about its lock that do not need the body of its function. */
export interface DeclaredTag extends Span {
  readonly tag: TagName;
  /** The business flag, or the text of a whole key without its values. */
  readonly flag: string;
  /** The name of the function, or `undefined` if declarations give it another name or none. */
  readonly name: string | undefined;
  /** The body of the function, or `undefined` in declarations. */
  readonly body: Span | undefined;
}

/** Returns the tags in a declaration file, where no function has a body. */
export function declaredTags(source: Source): DeclaredTag[] {
  return [...commentsThatMentionIt(source)].flatMap(({ comment, path }) => {
    const { tags, problems } = parseTags(source.file.text, comment);
    if (problems.length > 0) return []; // The build of the declaring project reports these.
    const name = declaredFunctionAt(source, comment, path);
    return tags.flatMap((tag) => declaredTag(source, tag, name, undefined));
  });
}

/** Returns the tags in a source file, including those of functions that its declarations do not show. */
export function tagsOfSource(ts: Parser, fileName: string, text: string): DeclaredTag[] {
  if (!mayHaveTags(text)) return [];
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  const source = { ts, file };
  const { points, needs } = findJoinPoints(source);
  return [...points, ...needs].flatMap(({ fn, tag, name, flaw }) => {
    const body = { start: fn.body.getStart(file), end: fn.body.end };
    return flaw === undefined ? declaredTag(source, tag, name, body) : [];
  });
}

function declaredTag(
  source: Source,
  { name: tag, word: { start, end }, attributes }: Tag,
  name: string | undefined,
  body: Span | undefined,
): DeclaredTag[] {
  const valueOf = (attribute: string): Item | undefined =>
    attributes.find((each) => each.name.text === attribute)?.items[0];
  const key = valueOf("key");
  const flag = valueOf("businessFlag")?.text ?? (key && kindOf(templateIn(source, key)));
  return flag === undefined ? [] : [{ tag, start, end, flag, name, body }];
}
