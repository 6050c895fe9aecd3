import type * as TS from "typescript";
import { commentsThatMentionIt } from "../../read/comments";
import { placeOf } from "../../read/place";
import { mayHaveTags } from "../../read/spelling";
import type { AnyFunction } from "../../read/syntax";
import { parseTags, withoutMargins, type Tag } from "../../read/tag";

/** A tag in a file, whatever is wrong with it. */
export interface TagInFile {
  readonly tag: Tag;
  /** What it stands before. */
  readonly fn: AnyFunction | undefined;
  /** Of that function: `OrderService.pay`. */
  readonly name: string | undefined;
  /** What stands between the tag and the offset in its comment, without the margins. */
  readonly writtenUpTo: (offset: number) => string | undefined;
}

/** The tags of the file. */
export function tagsIn(ts: typeof TS, file: TS.SourceFile): TagInFile[] {
  if (!mayHaveTags(file.text) || file.isDeclarationFile) return [];
  return [...commentsThatMentionIt(ts, file)].flatMap(({ comment, path }) =>
    parseTags(file.text, comment).tags.map((tag) => {
      const place = placeOf(ts, file, comment, path, tag.word);
      const content = withoutMargins(file.text, comment);
      const writtenUpTo = (offset: number): string | undefined => {
        if (offset <= tag.word.end || offset > comment.end) return undefined;
        const written = content.slice(tag.word.end - comment.start, offset - comment.start);
        return ANOTHER_TAG.test(written) ? undefined : written;
      };
      return "fn" in place
        ? { tag, fn: place.fn, name: place.name, writtenUpTo }
        : { tag, fn: undefined, name: undefined, writtenUpTo };
    }),
  );
}

const ANOTHER_TAG = /^[ \t]*@[A-Za-z]/m;
