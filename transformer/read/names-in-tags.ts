import type * as TS from "typescript";
import { ATTRIBUTES, isAttribute } from "../../runtime/attributes/tag-attributes";
import type { Parser } from "../parser/parser";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./comments";
import { identifiersOf } from "./names";
import { targetOf, type FoundFunction } from "./tagged-node";
import { mayHaveTags } from "./spelling";
import { parseTags, type Item, type Tag, type Word } from "./tag";
import { templateIn } from "./template";

/** A tag in a file, even if it contains mistakes. */
export interface TagInFile {
  readonly tag: Tag;
  readonly comment: Span;
  /** The function below the tag. */
  readonly found: FoundFunction | undefined;
}

/** Returns the tags of a source file. */
export function tagsIn(ts: Parser, file: TS.SourceFile): TagInFile[] {
  if (!mayHaveTags(file.text) || file.isDeclarationFile) return [];
  return [...commentsThatMentionIt(ts, file)].flatMap(({ comment, path }) =>
    parseTags(file.text, comment).tags.map((tag) => {
      const target = targetOf(ts, file, comment, path, tag.word);
      return { tag, comment, found: "fn" in target ? target : undefined };
    }),
  );
}

/** Returns the values, or parts of a value, that are code: an expression or the name of a type or class. */
export function codeIn(ts: Parser, attribute: string, item: Item, file: TS.SourceFile): readonly Word[] {
  if (!isAttribute(attribute)) return [];
  const row = ATTRIBUTES[attribute];
  switch (row.kind) {
    case "values":
    case "condition":
    case "type":
      return [item];
    case "template":
      return templateIn(ts, item, file).values;
    case "choice":
      return "orClass" in row ? [item] : [];
    default:
      return [];
  }
}

/** Returns the names that a tag uses. Reads wrong tags too: a name must not look unused while the tag is being fixed. */
export function namesInTag(ts: Parser, { attributes }: Tag, file: TS.SourceFile): Set<string> {
  const words = attributes.flatMap(({ name, items }) =>
    items.flatMap((item) => codeIn(ts, name.text, item, file)),
  );
  const names = new Set<string>();
  for (const { text } of words) for (const name of identifiersOf(ts, text, file)) names.add(name);
  return names;
}
