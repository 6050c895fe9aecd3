import { ATTRIBUTES, isAttribute } from "../../runtime/attributes/tag-attributes";
import type { Source } from "../parser/parser";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./join-points";
import { identifiersOf } from "./names";
import { targetOf, type FoundFunction } from "./tagged-node";
import { mayHaveTags } from "./spelling";
import { parseTags, type Item, type Tag, type Word } from "./tag";
import { templateIn } from "./template";

/** A tag in a file, even if it contains mistakes. */
export interface ParsedTag {
  readonly tag: Tag;
  readonly comment: Span;
  /** The function below the tag. */
  readonly found: FoundFunction | undefined;
}

/** Returns the tags of a source file. */
export function parsedTagsIn(source: Source): ParsedTag[] {
  const { file } = source;
  if (!mayHaveTags(file.text) || file.isDeclarationFile) return [];
  return [...commentsThatMentionIt(source)].flatMap(({ comment, path }) =>
    parseTags(file.text, comment).tags.map((tag) => {
      const target = targetOf(source, comment, path, tag.word, tag.word.text);
      return { tag, comment, found: "fn" in target ? target : undefined };
    }),
  );
}

/** Returns the values, or parts of a value, that are code: an expression or the name of a type or class. */
export function codeIn(source: Source, attribute: string, item: Item): readonly Word[] {
  if (!isAttribute(attribute)) return [];
  const row = ATTRIBUTES[attribute];
  switch (row.kind) {
    case "values":
    case "expression":
    case "path":
    case "type":
      return [item];
    case "time":
    case "count":
    case "template":
      return templateIn(source, item).values;
    case "choice":
      return "orClass" in row ? [item] : [];
    default:
      return [];
  }
}

/** Returns the names that a tag uses. Reads wrong tags too: a name must not look unused while the tag is being fixed. */
export function namesInTag(source: Source, { attributes }: Tag): Set<string> {
  const words = attributes.flatMap(({ name, items }) =>
    items.flatMap((item) => codeIn(source, name.text, item)),
  );
  const names = new Set<string>();
  for (const { text } of words) for (const name of identifiersOf(source, text)) names.add(name);
  return names;
}
