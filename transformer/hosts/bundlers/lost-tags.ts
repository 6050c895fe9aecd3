import { readFileSync, statSync } from "node:fs";
import { tagsOfSource, type DeclaredTag } from "../../read/declared-tags";
import { mayHaveTags } from "../../read/spelling";
import { parser } from "../../parser/parser";
import { problem, type Problem } from "../../text/problems";
import { notLockedBy } from "../../verify/declared";
import { functionsIn } from "../../verify/functions-in";
import { locksIn } from "../../verify/locks/locks";
import { weave } from "../../weave/weave";
import { findingIn, type Finding } from "../one-file/weaver";
import { SOURCE_FILES } from "./source-files";

// Another plugin may load a file and pass its own text to the host. Only tags and locks in that text are evidence. Their absence proves
// nothing, so these functions compare the text with the file on disk.

/**
 * Returns the tags on disk that are missing in the text that the host passes to our plugin instead of the file. A tag does not count if its
 * function is not in the text. A replacement for browsers may contain none of the file's functions.
 *
 * @param path the path of a file that may not exist
 */
export function tagsLostFrom(path: string, text: string): Finding[] {
  const { onDisk, problems } = lostTags(path, text);
  return problems.map((one) => findingIn(onDisk, one));
}

/** Returns the lost tags as problems with positions in the text on disk. */
export function lostTags(
  path: string,
  text: string,
): { readonly onDisk: string; readonly problems: readonly Problem[] } {
  const onDisk = textOf(path);
  if (onDisk === undefined || onDisk === text || !mayHaveTags(onDisk)) return { onDisk: text, problems: [] };
  const { tags, problems } = checkTags(path, onDisk);
  const present = tagsOfFunctionsIn(path, text, tags);
  if (present === undefined) return { onDisk, problems: [] };
  const kept = checkTags(path, text);
  const unlocked = notLockedBy(withoutKept(present, kept.tags), locksIn(parser(), path, text).locks);
  return {
    onDisk,
    problems: [
      ...unlocked.map((tag) => problem("tagLostBefore", tag, tag.name ?? tag.flag, `@${tag.tag}`)),
      ...(kept.problems.length < problems.length ? problems : []),
    ],
  };
}

/**
 * Returns the tags of a file whose functions are in a module's code without their locks, for a module that never reached our plugin.
 *
 * @param path the path of a file that may not exist
 * @param fix what to do in this host
 */
export function tagsUnseenIn(path: string, code: string, fix: string): Finding[] {
  const onDisk = textOf(path);
  if (onDisk === undefined || !mayHaveTags(onDisk)) return [];
  const { tags, problems } = checkTags(path, onDisk);
  const present = tagsOfFunctionsIn(path, code, tags);
  return present === undefined ? [] : unseen(path, onDisk, { tags: present, problems }, [code], fix);
}

/**
 * Returns the tags in the code of a module that is in no file, if the module never reached our plugin.
 *
 * @param path the path of a file, unless another plugin made up the module
 * @param fix what to do in this host
 */
export function tagsUnwovenIn(path: string, code: string, fix: string): Finding[] {
  if (!mayHaveTags(code) || textOf(path) !== undefined) return [];
  const name = SOURCE_FILES.test(path) ? path : `${path}.js`;
  return unseen(name, code, checkTags(name, code), [code], fix);
}

/**
 * Returns the tags of a file that never reached our plugin, if none of the outputs contains their locks. Every tag counts, because an
 * output may rename any function.
 *
 * @param path the path of a file that may not exist
 * @param fix what to do in this host
 */
export function tagsUnseenInOutputs(path: string, outputs: readonly string[], fix: string): Finding[] {
  const onDisk = textOf(path);
  if (onDisk === undefined || !mayHaveTags(onDisk)) return [];
  return unseen(path, onDisk, checkTags(path, onDisk), outputs, fix);
}

interface CheckedTags {
  /** The tags that the weave locks. */
  readonly tags: readonly DeclaredTag[];
  readonly problems: readonly Problem[];
}

function unseen(
  path: string,
  onDisk: string,
  { tags, problems }: CheckedTags,
  codes: readonly string[],
  fix: string,
): Finding[] {
  const locks = codes.flatMap((code) => locksIn(parser(), path, code).locks);
  const unlocked = notLockedBy(tags, locks);
  if (tags.length > 0 && unlocked.length === 0) return []; // Another copy of Lockweave wove the file and reported its problems.
  return [
    ...unlocked.map((tag) =>
      findingIn(onDisk, problem("tagNotSeen", tag, tag.name ?? tag.flag, `@${tag.tag}`, fix)),
    ),
    ...problems.map((one) => findingIn(onDisk, one)),
  ];
}

function textOf(path: string): string | undefined {
  const isFile = SOURCE_FILES.test(path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  return isFile ? readFileSync(path, "utf8") : undefined;
}

function checkTags(path: string, text: string): CheckedTags {
  const ts = parser();
  const woven = weave(path, text, { ts, module: "esm" });
  return woven === undefined
    ? { tags: [], problems: [] }
    : { tags: tagsOfSource(ts, path, text), problems: woven.diagnostics };
}

/**
 * Returns the tags whose functions are in the text, or `undefined` if the text has no function at all.
 *
 * @param path the path of the text, whose extension tells its language
 */
export function tagsOfFunctionsIn(
  path: string,
  text: string,
  tags: readonly DeclaredTag[],
): readonly DeclaredTag[] | undefined {
  const functions = [...functionsIn(parser(), path, text)];
  if (functions.length === 0) return undefined;
  return tags.filter(({ name = "" }) => {
    const own = name.slice(name.lastIndexOf(".") + 1);
    // Compilers rename private methods: `#pay` becomes `_A_pay` or `pay_fn`.
    if (own.startsWith("#")) return functions.some((other) => other.includes(own.slice(1)));
    const hasNoFixedName = !/^[\p{L}\p{N}_$]+$/u.test(own) || own === "anonymous" || own === "default";
    return hasNoFixedName || functions.includes(own);
  });
}

/**
 * Removes the tags that the text kept, compared by kind, flag, and name. Class names do not count, because compilers rename classes: `A.pay`
 * becomes `_A.pay`.
 */
function withoutKept(tags: readonly DeclaredTag[], kept: readonly DeclaredTag[]): DeclaredTag[] {
  const remaining = kept.map(idOf);
  return tags.filter((tag) => {
    const index = remaining.indexOf(idOf(tag));
    if (index !== -1) remaining.splice(index, 1);
    return index === -1;
  });
}

function idOf({ tag, flag, name = "" }: DeclaredTag): string {
  return JSON.stringify([tag, flag, name.slice(name.lastIndexOf(".") + 1)]);
}
