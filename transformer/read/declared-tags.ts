import type * as TS from "typescript";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./comments";
import { declaredFunctionAt } from "./place";
import { parseTags } from "./tag";

/** A tag in a declaration file, where no function has a body. */
export interface DeclaredTag extends Span {
  readonly flag: string;
  /** Of the function; `undefined` where the declarations have another name for it, or none. */
  readonly name: string | undefined;
}

export function declaredTags(ts: typeof TS, declarations: TS.SourceFile): DeclaredTag[] {
  return [...commentsThatMentionIt(ts, declarations)].flatMap(({ comment, path }) => {
    const { tags, problems } = parseTags(declarations.text, comment);
    if (problems.length > 0) return []; // Of its own project to tell.
    return tags.flatMap(({ word: { start, end }, attributes }) => {
      const flag = attributes.find(({ name }) => name.text === "businessFlag")?.items[0].text;
      const name = declaredFunctionAt(ts, declarations, comment, path);
      return flag === undefined ? [] : [{ start, end, flag, name }];
    });
  });
}
