import type { Source } from "../../parser/parser";
import { parsedTagsIn } from "../../read/names-in-tags";
import type { AnyFunction } from "../../read/syntax";
import { withoutMargins, type Tag } from "../../read/tag";

/** A tag in a file, valid or not. */
export interface EditableTag {
  readonly tag: Tag;
  /** The tagged function. */
  readonly fn: AnyFunction | undefined;
  /** The name of that function, such as `OrderService.pay`. */
  readonly name: string | undefined;
  /** Returns the text between the tag's name and the offset, without comment margins. `undefined` if the offset is not in the tag. */
  readonly writtenUpTo: (offset: number) => string | undefined;
}

/** Returns the tags of the file. */
export function editableTagsIn(source: Source): EditableTag[] {
  return parsedTagsIn(source).map(({ tag, comment, found }) => {
    const writtenUpTo = (offset: number): string | undefined => {
      if (offset <= tag.word.end || offset > comment.end) return undefined;
      const content = withoutMargins(source.file.text, comment);
      const written = content.slice(tag.word.end - comment.start, offset - comment.start);
      return ANOTHER_TAG.test(written) ? undefined : written;
    };
    return { tag, fn: found?.fn, name: found?.name, writtenUpTo };
  });
}

const ANOTHER_TAG = /^[ \t]*@[A-Za-z]/m;
