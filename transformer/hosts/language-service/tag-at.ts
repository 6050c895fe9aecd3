import type * as TS from "typescript";
import { tagsIn as readTags } from "../../read/names-in-tags";
import type { AnyFunction } from "../../read/syntax";
import { withoutMargins, type Tag } from "../../read/tag";

/** A tag in a file, valid or not. */
export interface TagInFile {
  readonly tag: Tag;
  /** The tagged function. */
  readonly fn: AnyFunction | undefined;
  /** The name of that function, such as `OrderService.pay`. */
  readonly name: string | undefined;
  /** Returns the text between the tag's name and the offset, without comment margins. `undefined` if the offset is not in the tag. */
  readonly writtenUpTo: (offset: number) => string | undefined;
}

/** Returns the tags of the file. */
export function tagsIn(ts: typeof TS, file: TS.SourceFile): TagInFile[] {
  return readTags(ts, file).map(({ tag, comment, found }) => {
    const writtenUpTo = (offset: number): string | undefined => {
      if (offset <= tag.word.end || offset > comment.end) return undefined;
      const content = withoutMargins(file.text, comment);
      const written = content.slice(tag.word.end - comment.start, offset - comment.start);
      return ANOTHER_TAG.test(written) ? undefined : written;
    };
    return { tag, fn: found?.fn, name: found?.name, writtenUpTo };
  });
}

const ANOTHER_TAG = /^[ \t]*@[A-Za-z]/m;
