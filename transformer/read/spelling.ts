import { distance } from "fastest-levenshtein";

/** The tag that acquires a lock. */
export const TAG_NAME = "redisLock";

/** The tag of a function whose callers must hold a lock. */
export const NEED_NAME = "needsLock";

export type TagName = typeof TAG_NAME | typeof NEED_NAME;

/**
 * Matches anything that may be a tag of ours, or a misspelling of one. A file without a match is not read further, so this must not miss
 * any. Each name has three parts, of which two typing mistakes leave one intact. Before `key=` and a quote, any name matches, because its
 * letters may be in any order. After an `@`, any character outside of ASCII matches, because it may look like a letter of the name.
 */
const MENTION =
  /@[^\w\s]{0,3}[ \t]*[\w.-]{0,8}?(?:r[-_.]*e[-_.]*d|i[-_.]*s[-_. \t]*l|n[-_.]*e[-_.]*e|d[-_.]*s[-_. \t]*l|o[-_.]*c[-_.]*k)|@[ \t]*[\w.-]{0,10}[^\0-\x7f]|[＠﹫]|\b(?:businessFlag|lockTime)\s*=|&(?:#0*64|#x0*40|commat);|redis[^a-z\s]?lock[^a-z]{1,8}key(?:Name\s*)?=|@[\w.-]+[ \t]+key=["'`]/i;
const MENTIONS = new RegExp(MENTION.source, "gi");

/** Whether the text may have tags. This cheap test never misses a tag. Most files need no more than this test. */
export function mayHaveTags(text: string): boolean {
  return MENTION.test(text);
}

/**
 * Whether the text may call our `configure()` or `LockModule`. This cheap test never misses such a call. Most files need no more than this
 * test.
 */
export function mayConfigure(text: string): boolean {
  return /configure|forRoot/.test(text) && mayImportOurs(text);
}

/**
 * Whether the text may have a call that gets the handshake. This cheap test never misses such a call. Most files need no more than this
 * test.
 */
export function mayNeedHandshake(text: string): boolean {
  return /configure|forRoot|testLocks/.test(text) && mayImportOurs(text);
}

/** Whether the text may import one of our modules. This test is cheap, too. */
export function mayImportOurs(text: string): boolean {
  return /["'`]lockweave(?:\/nest|\/runtime|\/testing)?["'`]/.test(text);
}

/** Whether the text may call one of our functions that gets an argument. This test is cheap, too. */
export function mayCallOurs(text: string): boolean {
  return /configure|forRoot|testLocks|currentLock/.test(text);
}

/** Returns the offsets at which there may be a tag. */
export function mentionsIn(text: string): number[] {
  return [...text.matchAll(MENTIONS)].map(({ index }) => index);
}

/** Whether the name can only be meant as a tag of ours: `@RedisLock`, `@redis-lock`, `@NeedsLock`. */
export function isMeant(name: string): boolean {
  return [TAG_NAME, NEED_NAME].some((tag) => lettersOf(name) === lettersOf(tag));
}

/**
 * Whether the name is at most two typing mistakes away from that of a tag: `@redisLok`, `@RedisLocks`, `@needLock`. Such a name may be
 * another word if it resembles `needsLock`, such as `@needsDocs`, so an attribute must follow it.
 *
 * @param rest the text after the name
 */
export function isNear(name: string, rest: string): boolean {
  return isNearTo(name, TAG_NAME) || (isNearTo(name, NEED_NAME) && ATTRIBUTE.test(rest));
}

function isNearTo(name: string, tag: TagName): boolean {
  const letters = lettersOf(name);
  return Math.abs(letters.length - tag.length) <= 2 && distance(letters, lettersOf(tag)) <= 2;
}

/** Matches an attribute directly after the name. Prose about the tag has none there. */
export const ATTRIBUTE = /^\s*[:(]?\s*\w+\s*=/;

/** Returns the tag that a misspelled name most resembles. */
export function tagMeantBy(name: string): TagName {
  const [toTag, toNeed] = [TAG_NAME, NEED_NAME].map((tag) => distance(lettersOf(name), lettersOf(tag)));
  return toTag !== undefined && toNeed !== undefined && toNeed < toTag ? NEED_NAME : TAG_NAME;
}

/** Whether a name without an `@` is meant as the tag, because a whole key follows it. Prose has no such key. */
export function isMeantWithKey(name: string, text: string): boolean {
  return isMeant(name) && /^[ \t]+key=["'`]/.test(text);
}

/** Whether a tag of this name has attributes that only ours has. Tags of JSDoc and TSDoc never count, because any text may follow them. */
export function hasOurAttributes(name: string, text: string): boolean {
  if (DOCUMENTATION.has(name)) return false;
  if (/[.-](?:businessFlag|lockTime)$/.test(name)) return /^\s*=/.test(text);
  const isOurs = /\b(?:businessFlag|lockTime)\s*=/.test(text) || (isAlike(name) && /\bkey\s*=/.test(text));
  return LIST.test(text) && isOurs;
}

/**
 * Whether the name contains the tag's, or has the same letters: `@withRedisLock`, `@reidsLcok`. A `key` alone shows that the tag is ours
 * only after such a name.
 */
function isAlike(name: string): boolean {
  const inOrder = (letters: string): string => Array.from(letters).toSorted().join("");
  const letters = lettersOf(name);
  return [TAG_NAME, NEED_NAME].some((tag) => {
    const ours = lettersOf(tag);
    return letters.includes(ours) || inOrder(letters) === inOrder(ours);
  });
}

/** Matches attributes after `@mutex`: `@mutex (a=`, `@mutex - a=`, `@mutex/redis a=`, `@mutex lock a=`. */
const LIST = /^(?:[:/][\w.-]+)*(?:[ \t]+\w*lock\w*)?[^\w=]*\b[A-Za-z]\w*\s*=/i;

/** Returns the letters of a name as people read them: in Latin, without accents, signs, and invisible characters. */
function lettersOf(name: string): string {
  const letters = Array.from(
    name.normalize("NFKD").toLowerCase(),
    (letter) => LOOKALIKES.get(letter) ?? letter,
  );
  return letters.join("").replaceAll(/\P{L}/gu, "");
}

/** The characters that look like a letter of the tag's name. */
const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    r: "\u0433\u1d26\u0280\uab47\uab81\u027e\u027c\u027d\u13a1\uab71",
    e: "\u0435\u0454\u04bd\u212e\u025b\u0259\u03b5\u1d07\u0247\u13ac\uab7c\u20ac3",
    d: "\u0501\u1d05\u0256\u0257\u0111\u00f0\u056a\u13a0\uab70",
    i: "\u0456\u03b9\u0269\u0268\u0131\u026a\u0390!",
    s: "\u0455\u01bd\ua731\u03c2\u0282\u13da\uabaa$5",
    l: "\u04cf\u0142\u026d\u026b\u029f\u01c0\u05c0\u13de\uabae|1",
    o: "\u043e\u03bf\u1d0f\u0585\u00f8\u03c3\u1d11\u05e1\u0d200",
    c: "\u0441\u03f2\u1d04\u0188\u2184\u023c\u13df\uabaf",
    k: "\u043a\u03ba\u1d0b\u049b\u049d\u0199\u13e6\uabb6",
  }).flatMap(([letter, others]) => Array.from(others, (other) => [other, letter] as const)),
);

/** The names of the tags of JSDoc and TSDoc. */
export const DOCUMENTATION: ReadonlySet<string> = new Set(
  `abstract access alias alpha arg argument async augments author beta borrows callback category class classdesc
  constant constructor constructs copyright decorator default defaultValue deprecated desc description enum
  event eventProperty example exception experimental exports extends external file fires function generator
  global hidden hideconstructor ignore implements import inheritDoc inheritdoc inner instance interface internal
  kind label lends license link linkcode linkplain listens member memberof method mixes mixin module name
  namespace override overload package packageDocumentation param prop property private privateRemarks protected
  public readonly remarks requires return returns satisfies sealed see since static summary template this throws
  todo tutorial type typedef typeParam typeparam var variation version virtual yields`.split(/\s+/),
);
