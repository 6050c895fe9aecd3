import { TAG_NAME } from "../read/spelling";
import { groupedBy } from "../text/grouped-by";
import { isSameEssence, type Essence } from "./locks/canonical";
import { locksIn, type Lock, type Locks } from "./locks/locks";
import { outputFiles, readOutput, shortPath } from "./outputs";
import { positionOf, type Position } from "./position";
import type { Project, TaggedFile, TaggedFunction } from "./project";

/** The reason why the output does not prove a lock. */
export type Reason =
  | "missing"
  | "unwoven"
  | "broken"
  | "lowered"
  | "stale"
  | "tooFew"
  | "copies"
  | "cannotTell"
  | "uncompiled"
  | "bundled";

/** A tag whose lock is not proved. */
export interface Unproved extends Position {
  readonly reason: Reason;
  readonly message: string;
}

export interface Checked {
  /** The number of tags. */
  readonly tags: number;
  readonly unproved: readonly Unproved[];
}

/** A tag, the lock or the check that the transformer writes for it, and the output file that must contain the lock. */
export interface Expected {
  readonly project: Project;
  readonly file: TaggedFile;
  readonly site: TaggedFunction;
  readonly lock: Lock;
  readonly output: string;
}

/** The text of a lock that is compared. */
type Level = "exact" | "loose";

/** The result for the output of one project. */
export interface Proof {
  readonly unproved: readonly Unproved[];
  /** Whether a file exists that the project's compiler writes for a tagged source. */
  readonly hasOutput: boolean;
  /** The output file that must contain the lock of the tag in this place. */
  readonly outputOf: (place: Position) => string | undefined;
  /** The output files that must contain the locks. */
  readonly outputs: ReadonlySet<string>;
}

/**
 * Compares the compiler's output on disk with the transformer's output for the current sources. A tag is proved if the
 * output file has a function at the same place among classes and functions. That function must only open the same lock
 * (same options, same key), acquire it, and run a body between `try` and `release`, with its returns awaited. For a
 * `@needsLock`, the function must first check the same lock. Comments and strings prove nothing.
 *
 * This does not prove that the body is that of the source. A change outside the tags goes unnoticed.
 */
export function proofOf(project: Project, cwd: string): Proof {
  const { expected, unproved } = expectedOf([project], ({ files }) => files);
  const outputs = new Map(expected.map(({ file, site, output }) => [keyOf(positionOf(file, site)), output]));
  let hasOutput = false;
  for (const [output, ofOutput] of groupedBy(expected, (one) => one.output)) {
    const text = readOutput(output);
    const name = shortPath(output, cwd);
    if (text === undefined) {
      unproved.push(...ofOutput.map((one) => because("missing", one, `\`${name}\` does not exist`)));
    } else {
      hasOutput = true;
      unproved.push(...compare(ofOutput, locksIn(project.ts, output, text), name, "exact"));
    }
  }
  return {
    unproved,
    hasOutput,
    outputOf: (place) => outputs.get(keyOf(place)),
    outputs: new Set(outputs.values()),
  };
}

function keyOf({ file, line, column }: Position): string {
  return `${file}:${line}:${column}`;
}

/**
 * Searches the output of bundlers and minifiers for the locks. Bundlers rename local variables, rewrite expressions, and
 * move code between files. A tag is proved if some file has a function with the same options, and with a key that reads
 * the same parts of the same parameters. Functions with one name and one key are proved together: see
 * {@link isEachProved}.
 *
 * This proves neither that these files run, nor that they contain no other copy of the function.
 *
 * @throws {UsageError} if a path names no file
 */
export function checkBundled(projects: readonly Project[], outputs: readonly string[], cwd: string): Checked {
  const files = outputFiles(outputs, cwd);
  const filesOf = ({ files: own, linked }: Project): readonly TaggedFile[] => [...own, ...linked()];
  const { expected, unproved } = expectedOf(projects, filesOf);
  const [first] = projects;
  if (first === undefined) return { tags: 0, unproved };
  const found = files.map((name) => locksIn(first.ts, name, readOutput(name) ?? ""));
  const all = {
    locks: found.flatMap(({ locks }) => locks),
    broken: found.flatMap(({ broken }) => broken),
  };
  // A source file may belong to several projects, and the bundle contains it once.
  const once = new Map(
    expected.map((one) => [`${one.file.source.fileName} ${one.site.start}`, one] as const),
  );
  unproved.push(...compare([...once.values()], all, outputs.join(", "), "loose"));
  return { tags: countTags(projects, filesOf), unproved };
}

type FilesOf = (project: Project) => readonly TaggedFile[];

/** The number of places in the sources that have a tag. */
export function countTags(projects: readonly Project[], filesOf: FilesOf = ({ files }) => files): number {
  const places = projects.flatMap((project) =>
    filesOf(project).flatMap(({ source, functions }) =>
      functions.map(({ start }) => `${source.fileName} ${start}`),
    ),
  );
  return new Set(places).size;
}

/** Returns the setting that keeps TypeScript from writing code. */
export function settingThatPreventsOutput({ options }: Project): string | undefined {
  return options.noEmit ? "noEmit" : options.emitDeclarationOnly ? "emitDeclarationOnly" : undefined;
}

// ---- what the output must contain -----------------------------------------------------------------------

export function expectedOf(
  projects: readonly Project[],
  filesOf: FilesOf,
): { expected: Expected[]; unproved: Unproved[] } {
  const expected: Expected[] = [];
  const unproved: Unproved[] = [];
  for (const project of projects) {
    const made = new Map<string, Lock[]>();
    for (const file of filesOf(project)) {
      const emitted = project.emitWoven(file);
      for (const [name, text] of emitted) {
        if (!made.has(name)) made.set(name, [...locksIn(project.ts, name, text).locks]);
      }
      for (const site of file.functions) {
        const [output] = emitted.keys();
        const lock = output === undefined ? undefined : takeLock(made.get(output), site);
        if (lock !== undefined && output !== undefined) {
          expected.push({ project, file, site, lock, output });
        } else {
          const why =
            output === undefined
              ? "cannot be checked, because TypeScript emits no code for this file"
              : "cannot be checked, because its `target` is too old";
          unproved.push({
            ...positionOf(file, site),
            reason: "cannotTell",
            message: `${nameOf(site)} ${why}.`,
          });
        }
      }
    }
  }
  return { expected, unproved };
}

/**
 * Removes and returns the first lock or check with the site's name. Functions with the same name have the same order in the output as in the
 * source.
 */
function takeLock(made: Lock[] | undefined, { tag, name }: TaggedFunction): Lock | undefined {
  const index = made?.findIndex((lock) => lock.tag === tag && lock.site === name) ?? -1;
  return index === -1 ? undefined : made?.splice(index, 1)[0];
}

// ---- what the output contains ---------------------------------------------------------------------------

export function compare(
  expected: readonly Expected[],
  found: Locks,
  output: string,
  level: Level,
): Unproved[] {
  const groups = groupedBy(expected, ({ lock }) => lock[level] + JSON.stringify(lock.key));
  return [...groups.values()].flatMap((group) => {
    const made = group.map(({ lock }) => lock);
    const same = found.locks.filter((lock) => made.some((one) => isSame(one, lock, level)));
    const whole = same.filter((lock) => made.some((one) => isAwaited(one, lock)));
    if (isEachProved(whole, made, level)) return [];
    const what = made.every(({ tag }) => tag === TAG_NAME) ? "locks" : "checks";
    if (whole.length >= made.length) {
      const copies = `\`${output}\` contains ${whole.length} ${what} of that name and key for ${made.length} functions, but they may be copies of one`;
      return group.map((one) => because("copies", one, copies));
    }
    if (whole.length > 0) {
      const tooFew = `\`${output}\` contains only ${whole.length} of ${made.length} ${what} of that name and key`;
      return group.map((one) => because("tooFew", one, tooFew));
    }
    if (same.length > 0) {
      const early = `in \`${output}\` it releases its lock before the returned promise settles`;
      return group.map((one) => because("broken", one, early));
    }
    const isOfAnother = (lock: Lock): boolean => expected.some((one) => isSame(one.lock, lock, level));
    const others = found.locks.filter((lock) => !isOfAnother(lock));
    return group.map((one) => withoutLock(one, { ...found, locks: others }, output));
  });
}

/** Returns the report for a tag if none of the locks is the expected one. */
function withoutLock(one: Expected, { locks, broken }: Locks, output: string): Unproved {
  const { tag, name } = one.site;
  const other = locks.find((lock) => lock.tag === tag && lock.site === name);
  if (other !== undefined) return because("stale", one, staleness(one.lock, other, output));
  const isOfLock = tag === TAG_NAME;
  const found = broken.filter(({ site }) => site === name);
  if (found.length === 0)
    return because("unwoven", one, `\`${output}\` does not ${isOfLock ? "lock" : "check"} it`);
  if (isOfLock && found.every(({ isLowered }) => isLowered))
    return because("lowered", one, `in \`${output}\` it has no \`await\`, so its lock cannot be recognized`);
  const problem = isOfLock ? "its lock does not surround its body" : "its check does not precede its body";
  return because("broken", one, `in \`${output}\` ${problem}`);
}

export function isSame(expected: Lock, found: Lock, level: Level): boolean {
  if (level === "exact") return expected.exact === found.exact;
  return (
    expected.steps === found.steps &&
    areSameOptions(expected, found) &&
    expected.key.length === found.key.length &&
    expected.key.every((part, index) => isSameEssence(part, found.key[index]))
  );
}

function areSameOptions({ options: expected }: Lock, { options: found }: Lock): boolean {
  return (
    expected.size === found.size &&
    [...expected].every(([name, value]) => found.has(name) && isSameOption(value, found.get(name)))
  );
}

/** Whether two values of an option are the same. A bundler may put a constant in place of an expression. */
function isSameOption(expected: unknown, found: unknown): boolean {
  if (!isEssence(expected)) return expected === found;
  return isSameEssence(expected, isEssence(found) ? found : { reads: "", literals: String(found) });
}

function isEssence(option: unknown): option is Essence {
  return typeof option === "object" && option !== null;
}

/** Whether the found lock awaits everything that the expected one awaits. */
function isAwaited(expected: Lock, found: Lock): boolean {
  return found.unawaited <= expected.unawaited || found.immediate <= expected.immediate;
}

/**
 * Whether the found locks prove one lock for each expected function. Several bundles may each have a copy of one function,
 * even a differently minified one. So all functions must be in one file, or have the bodies that the compiler writes.
 */
function isEachProved(found: readonly Lock[], expected: readonly Lock[], level: Level): boolean {
  if (found.length < expected.length) return false;
  if (level === "exact" || expected.length === 1) return true;
  const bodies = new Set(expected.map(({ body }) => body));
  const isInOneFile = [...groupedBy(found, ({ file }) => file).values()].some(
    (ofFile) => ofFile.length >= expected.length && differentBodies(ofFile) >= bodies.size,
  );
  const asCompiled = found.filter(({ body }) => bodies.has(body));
  return isInOneFile || differentBodies(asCompiled) === expected.length;
}

function differentBodies(locks: readonly Lock[]): number {
  return new Set(locks.map(({ body }) => body)).size;
}

function staleness(expected: Lock, found: Lock, output: string): string {
  const what = expected.tag === TAG_NAME ? "lock" : "check";
  const names = new Set([...expected.options.keys(), ...found.options.keys()]);
  const differences = [...names]
    .filter((name) => !isSameOption(expected.options.get(name), found.options.get(name)))
    .map((name) => `${name}=${formatOption(found, name)} instead of ${name}=${formatOption(expected, name)}`);
  if (differences.length === 0) {
    differences.push("another key, error class, place in the file, or version of lockweave");
  }
  return `its ${what} in \`${output}\` differs from the tag: ${differences.join(", ")}`;
}

function formatOption({ options }: Lock, name: string): string {
  const value = options.get(name);
  if (isEssence(value)) return "(another expression)";
  return options.has(name) ? String(value) : "(default)";
}

export function because(reason: Reason, { file, site }: Expected, message: string): Unproved {
  return {
    ...positionOf(file, site),
    reason,
    message: `Cannot verify ${whatOf(site)} of ${nameOf(site)}: ${message}.`,
  };
}

/** Returns what the output must contain for the tag. */
export function whatOf({ tag }: TaggedFunction): string {
  return tag === TAG_NAME ? "the lock" : "the `@needsLock`";
}

function nameOf({ name }: TaggedFunction): string {
  return `\`${name}\``;
}
