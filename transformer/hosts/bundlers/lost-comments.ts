import { readFileSync, statSync } from "node:fs";
import { tagsOfSource } from "../../read/declared-tags";
import { mayHaveTags } from "../../read/spelling";
import { parser } from "../../parser/parser";
import { problem } from "../../text/problems";
import { unlockedOf } from "../../verify/declared";
import { findingIn, type Finding } from "../one-file/weaver";

/**
 * The tags on disk of functions that are in the text without them, and without their locks: another plugin has loaded the file,
 * and left its comments out. What stands for the file in a browser's build may have none of its functions.
 *
 * @param path of a file, which need not be there
 */
export function tagsLostFrom(path: string, text: string): Finding[] {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  // Nearly always it is the text on disk, which is not worth reading again.
  if (size === undefined || size === Buffer.byteLength(text) || mayHaveTags(text)) return [];
  const onDisk = readFileSync(path, "utf8");
  if (!mayHaveTags(onDisk)) return [];
  const ts = parser();
  const { tags = [] } = unlockedOf(ts, tagsOfSource(ts, path, onDisk), path, text) ?? {};
  return tags.flatMap(({ start, end, name = "" }) => {
    const own = name.slice(name.lastIndexOf(".") + 1);
    return own !== "" && text.includes(own)
      ? [findingIn(onDisk, problem("tagLostBefore", { start, end }, name))]
      : [];
  });
}
