import type * as TS from "typescript";
import { groupedBy } from "../../text/grouped-by";
import { problem } from "../../text/problems";
import { tagOf, type Finding } from "../finding";
import type { TaggedLock } from "../tagged-locks";

/** Finds tags with the same flag whose keys have different shapes, so that they are different locks. */
export function keysNeverMeet(
  ts: typeof TS,
  locks: readonly TaggedLock[],
  checker: TS.TypeChecker,
): Finding[] {
  const plain = locks.filter(({ plan }) => plan.wholeKey === undefined);
  const groups = groupedBy(plain, ({ store, flag }) => JSON.stringify([store, flag]));
  return [...groups.values()].flatMap((group) => {
    const shapes = group.map((lock) => ({ lock, shape: shapeOf(ts, lock, checker) }));
    const different = [...groupedBy(shapes, ({ shape }) => shape.join(" ")).values()].flatMap(
      ([first]) => first ?? [],
    );
    return different.flatMap(({ lock, shape }, index): Finding[] => {
      const before = different.slice(0, index);
      const other = before.find((one) => !canBeEqual(one.shape, shape));
      // A key that can equal an earlier one has the same conflicts, so only the earlier tag is reported.
      if (other === undefined || before.some((one) => canBeEqual(one.shape, shape))) return [];
      const [here, there] = [textOf(shape), textOf(other.shape)];
      const why = shape.length === other.shape.length ? ", which never have the same text" : "";
      return [
        {
          file: lock.file,
          problem: problem("keysNeverMeet", lock.at, lock.flag, here, there, other.lock.name, why),
          isCertain: false,
          proof: [tagOf(lock), tagOf(other.lock)],
        },
      ];
    });
  });
}

/** Finds flags that differ only by an easy typing mistake, if one of them is used only once. */
export function similarFlags(locks: readonly TaggedLock[]): Finding[] {
  const plain = locks.filter(({ plan }) => plan.wholeKey === undefined);
  const groups = [...groupedBy(plain, ({ flag }) => flag).values()];
  const similarTo = similarGroups(groups);
  const reported = new Set<TaggedLock>();
  return groups.flatMap((group): Finding[] => {
    const [lock, another] = group;
    if (lock === undefined || another !== undefined) return [];
    const [other, second] = similarTo(lock) ?? [];
    if (other === undefined || (second === undefined && reported.has(other))) return [];
    reported.add(lock);
    return [
      {
        file: lock.file,
        problem: problem("similarFlag", lock.at, lock.flag, other.flag, other.name),
        isCertain: false,
        proof: [tagOf(lock), tagOf(other)],
      },
    ];
  });
}

type Group = readonly TaggedLock[];

/** Returns a function that finds the first group with a similar flag. It compares only flags that differ by a few letters. */
function similarGroups(groups: readonly Group[]): (lock: TaggedLock) => Group | undefined {
  const byLetters = new Map<string, number[]>();
  const byFewerLetters = new Map<string, number[]>();
  groups.forEach(([one], index) => {
    const letters = plainLetters(one?.flag ?? "");
    addTo(byLetters, letters, index);
    for (const fewer of withoutOneLetter(letters)) addTo(byFewerLetters, fewer, index);
  });
  return (lock) => {
    const letters = plainLetters(lock.flag);
    const texts = [letters, ...withoutOneLetter(letters), ...withSwappedLetters(letters)];
    const indexes = texts.flatMap((text) => byLetters.get(text) ?? []);
    const inOrder = [...indexes, ...(byFewerLetters.get(letters) ?? [])].toSorted((a, b) => a - b);
    return inOrder
      .map((index) => groups[index] ?? [])
      .find(([other]) => other !== undefined && other !== lock && isSimilar(lock.flag, other.flag));
  };
}

function addTo(lists: Map<string, number[]>, text: string, index: number): void {
  const known = lists.get(text);
  if (known === undefined) lists.set(text, [index]);
  else known.push(index);
}

function withoutOneLetter(text: string): string[] {
  return lettersIn(text, 1).map((at) => text.slice(0, at) + text.slice(at + 1));
}

function withSwappedLetters(text: string): string[] {
  return lettersIn(text, 2).map((at) => swappedAt(text, at));
}

/** Returns the positions at which `count` letters follow each other, without the first position of the text. */
function lettersIn(text: string, count: number): number[] {
  return [...text.matchAll(new RegExp(`(?<!^)(?=\\p{L}{${count}})`, "gu"))].map(({ index }) => index);
}

/** The kind of text that a part of the key is. */
type Part = "number" | "boolean" | "text";

function shapeOf(ts: typeof TS, { plan }: TaggedLock, checker: TS.TypeChecker): Part[] {
  const isOfEach = plan.options.includes("each: true");
  const parts = plan.key.map(({ shown }) => partOf(ts, typeAt(ts, plan.fn, shown, checker), checker));
  return isOfEach ? parts.slice(0, 1) : parts;
}

function typeAt(
  ts: typeof TS,
  fn: TaggedLock["fn"],
  path: string,
  checker: TS.TypeChecker,
): TS.Type | undefined {
  const [root = "", ...fields] = path.split(/\??\./u);
  const parameter = fn.parameters.find(({ name }) => ts.isIdentifier(name) && name.text === root);
  let type = parameter && checker.getTypeAtLocation(parameter);
  for (const field of fields) {
    const member = type && checker.getPropertyOfType(checker.getNonNullableType(type), field);
    type = member && checker.getTypeOfSymbol(member);
  }
  return type && checker.getNonNullableType(type);
}

function partOf(ts: typeof TS, type: TS.Type | undefined, checker: TS.TypeChecker): Part {
  if (type === undefined) return "text";
  const kinds = new Set(
    (type.isUnion() ? type.types : [type]).map(({ flags }): Part => {
      if ((flags & (ts.TypeFlags.NumberLike | ts.TypeFlags.BigIntLike)) !== 0) return "number";
      return (flags & ts.TypeFlags.BooleanLike) === 0 ? "text" : "boolean";
    }),
  );
  const [only, another] = kinds;
  return only !== undefined && another === undefined && type !== checker.getNeverType() ? only : "text";
}

/** Whether two keys can be the same. A text may contain a number or a boolean, but a number is never a boolean. */
function canBeEqual(one: readonly Part[], other: readonly Part[]): boolean {
  return (
    one.length === other.length &&
    one.every((part, index) => part === other[index] || part === "text" || other[index] === "text")
  );
}

function textOf(shape: readonly Part[]): string {
  if (shape.length === 0) return "no part";
  const parts = shape.length === 1 ? "one part" : `${shape.length} parts`;
  return `${parts} (${shape.join(", ")})`;
}

/**
 * Whether two flags are the same except for case and separators, one additional letter after the first, or two letters that are swapped.
 */
function isSimilar(one: string, other: string): boolean {
  const [a, b] = [plainLetters(one), plainLetters(other)];
  if (a === b) return true;
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  // Short flags may be similar by chance. That is rarer for swapped letters than for an additional letter, so the limit differs.
  if (short.length < (a.length === b.length ? 5 : 6)) return false;
  const at = Array.from(short).findIndex((letter, index) => letter !== long[index]);
  if (at < 1) return false;
  if (long.length === short.length + 1) {
    return /\p{L}/u.test(long[at] ?? "") && short.slice(at) === long.slice(at + 1);
  }
  return (
    long.length === short.length && swappedAt(short, at) === long && /^\p{L}+$/u.test(short.slice(at, at + 2))
  );
}

function swappedAt(text: string, at: number): string {
  return `${text.slice(0, at)}${text[at + 1] ?? ""}${text[at] ?? ""}${text.slice(at + 2)}`;
}

function plainLetters(flag: string): string {
  return flag.replaceAll(/[-_.: ]/g, "").toLowerCase();
}
