import { distance } from "fastest-levenshtein";

export const TAG_NAME = "redisLock";

/**
 * Whatever may be the tag, or a slip of it: one look at a file decides whether to read on, so it must not miss
 * any. Of three parts of the name, two slips leave one whole; where `key` follows, its letters may have any order. Letters that only look like its own are none of them.
 */
const MENTION =
  /@[ \t]*[\w.-]{0,8}?(?:r[-_.]*e[-_.]*d|i[-_.]*s[-_. \t]*l|o[-_.]*c[-_.]*k)|@[ \t]*[\w.-]{0,10}[^\0-\x7f]|[＠﹫]|\b(?:businessFlag|lockTime)\s*=|redis[-_]?lock[ \t]+key=|@[\w.-]+[ \t]+key=["'`]/i;
const MENTIONS = new RegExp(MENTION.source, "gi");

/** Cheap, and never misses a tag: most files have none and are not looked at any further. */
export function mayHaveTags(text: string): boolean {
  return MENTION.test(text);
}

/** Where to look for tags. */
export function mentionsIn(text: string): number[] {
  return [...text.matchAll(MENTIONS)].map(({ index }) => index);
}

/** `@RedisLock`, `@redis-lock`: what can only be meant as the tag. */
export function isMeant(name: string): boolean {
  return lettersOf(name) === lettersOf(TAG_NAME);
}

/** `@redisLok`, `@RedisLocks`: at most two slips away from the tag's name. */
export function isNear(name: string): boolean {
  const letters = lettersOf(name);
  return Math.abs(letters.length - TAG_NAME.length) <= 2 && distance(letters, lettersOf(TAG_NAME)) <= 2;
}

/** Without its `@` it is no prose, where the whole key is beside it. */
export function isMeantWithKey(name: string, text: string): boolean {
  return isMeant(name) && /^[ \t]+key=["'`]/.test(text);
}

/** Whether a tag of this name has what only ours has beside it. Those of JSDoc and TSDoc have any text. */
export function hasOurAttributes(name: string, text: string): boolean {
  if (DOCUMENTATION.has(name)) return false;
  if (/[.-](?:businessFlag|lockTime)$/.test(name)) return /^\s*=/.test(text);
  const isOurs = /\b(?:businessFlag|lockTime)\s*=/.test(text) || (isAlike(name) && /\bkey\s*=/.test(text));
  return LIST.test(text) && isOurs;
}

/** `@withRedisLock`, `@reidsLcok`: a `key` is anybody's, but not beside such a name. */
function isAlike(name: string): boolean {
  const inOrder = (letters: string): string => Array.from(letters).toSorted().join("");
  const [letters, ours] = [lettersOf(name), lettersOf(TAG_NAME)];
  return letters.includes(ours) || inOrder(letters) === inOrder(ours);
}

/** Attributes behind `@mutex`: `@mutex (a=`, `@mutex - a=`, `@mutex/redis a=`, `@mutex lock a=`. */
const LIST = /^(?:[:/][\w.-]+)*(?:[ \t]+\w*lock\w*)?[^\w=]*\b[A-Za-z]\w*\s*=/i;

/** Full-width ones are letters as others; those that look like others are slips; nobody sees what is no letter. */
function lettersOf(name: string): string {
  return name.normalize("NFKC").replaceAll(/\P{L}/gu, "").toLowerCase();
}

const DOCUMENTATION: ReadonlySet<string> = new Set(
  `abstract access alias alpha arg argument async augments author beta borrows callback category class classdesc
  constant constructor constructs copyright decorator default defaultValue deprecated desc description enum
  event eventProperty example exception experimental exports extends external file fires function generator
  global hidden hideconstructor ignore implements import inheritDoc inheritdoc inner instance interface internal
  kind label lends license link linkcode linkplain listens member memberof method mixes mixin module name
  namespace override overload package packageDocumentation param prop property private privateRemarks protected
  public readonly remarks requires return returns satisfies sealed see since static summary template this throws
  todo tutorial type typedef typeParam typeparam var variation version virtual yields`.split(/\s+/),
);
