import MagicString from "magic-string";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { findJoinPoints, type Forbidden } from "../read/join-points";
import { freshName, usedNamesIn } from "../read/names";
import type { Defaults } from "../read/options";
import { hasOnlyCommonJs } from "../read/module-syntax";
import { mayShakeHands, type FindReExports } from "../read/lockweave-calls";
import { plan, type Plan } from "../read/plan";
import { mayHaveTags, mentionsIn } from "../read/spelling";
import { wovenMark } from "../read/woven-mark";
import type { Insertion } from "../text/edits";
import { Positions } from "../text/positions";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { asyncKeyword } from "./async-keyword";
import { currentLockArguments } from "./current-lock";
import { handshakes, callsWithoutHandshake } from "./handshake";
import { requiredStores } from "./required-stores";
import { refuse, refuseFile, refuseToLoad } from "./refusal";
import { importRuntime, type ModuleFormat } from "./runtime-import";
import { weaveFunction } from "./lock-template";

export interface WeaveOptions {
  /** The compiler whose parser is used. */
  readonly ts: Parser;
  /** How the file imports the runtime. */
  readonly module: ModuleFormat;
  /** The values of attributes that a tag does not set. */
  readonly defaults?: Defaults;
  /** Finds our functions among the exports of modules that are not ours. */
  readonly findReExports?: FindReExports;
  /** The file, if it is parsed already. */
  readonly sourceFile?: TS.SourceFile;
  /** Returns the name of the file in the woven code. It must be the same on every machine. */
  readonly pathOf?: (fileName: string) => string | undefined;
}

/** A function that is locked in the woven code, with the position of its tag. */
export interface WovenSite extends Span {
  readonly name: string;
  readonly plan: Plan;
}

/** Whether the offset in the text on disk is in the comment of a tag. */
export function isOfTag(sites: readonly WovenSite[], text: string, offset: number): boolean {
  return sites.some(({ start }) => start <= offset && offset < text.indexOf("*/", start));
}

/**
 * A function whose body was an expression, and its name. For an expression, the compiler reports the part that has the wrong type. For a
 * block, as in woven code, it only reports that the whole function has the wrong type.
 */
interface NamedExpression {
  readonly name: Span;
  readonly value: Span;
}

/** A source map of version 3. It is declared here, so that users of our types do not need the types of the library that makes it. */
export interface WovenMap {
  readonly version: number;
  readonly file: string;
  sources: string[];
  sourcesContent?: string[];
  names: string[];
  readonly mappings: string;
  /** Returns the map as JSON. `toUrl()` returns that as a `data:` URL. */
  toString(): string;
  toUrl(): string;
}

export interface Woven {
  /** The text with the locks in it, on the same lines. */
  readonly code: string;
  /** A source map from the woven text to the text on disk. */
  map(): WovenMap;
  readonly positions: Positions;
  readonly sites: readonly WovenSite[];
  /** The name under which the code imports the runtime, if it does. */
  readonly namespace: string | undefined;
  /** The problems of the tags. The file is woven nevertheless, but the functions concerned refuse to run. */
  readonly diagnostics: readonly Problem[];
  /** The woven arrow functions whose body was an expression. */
  readonly expressions: readonly NamedExpression[];
  /** Likely mistakes that are no reason to fail a build. */
  readonly warnings: readonly Problem[];
}

/** Whether the file may need weaving. This cheap test never misses a file. Most files need no more than this test. */
export function mayNeedWeave(text: string): boolean {
  return mayHaveTags(text) || mayShakeHands(text);
}

/**
 * Weaves the locks of one file into its text. The diagnostics contain the problems, so a wrong tag throws nothing.
 *
 * @returns `undefined` when there is nothing to weave
 */
export function weave(fileName: string, text: string, options: WeaveOptions): Woven | undefined {
  if (!mayNeedWeave(text) && options.findReExports === undefined) return undefined;
  const { ts } = options;
  const file = options.sourceFile ?? ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  try {
    return wovenFile(file, options);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // A recursive walk of the syntax overflowed the stack.
    const [at = text.indexOf("configure")] = mentionsIn(text);
    return refused(file, problem("nestedTooDeeply", { start: at, end: at + 1 }));
  }
}

function wovenFile(file: TS.SourceFile, options: WeaveOptions): Woven | undefined {
  const { ts, findReExports, defaults = new Map() } = options;
  if (!parses(file)) return unparsed(ts, file);
  const isModule = ["script", "raised script"].includes(options.module) || ts.isExternalModule(file);
  const { plans, forbidden, bodiless, diagnostics, warnings: ofTags } = planAll(ts, file, defaults, isModule);
  const { insertions: inBodies, namespace } = insertionsFor(ts, file, plans, forbidden, isModule, options);
  // The file's refusal comes first, so that it does not separate a function from its `async` keyword.
  const insertions = [...refuseToLoad(file, bodiless), ...inBodies].toSorted((a, b) => a.at - b.at);
  const warnings = [...ofTags, ...callsWithoutHandshake(ts, file, findReExports)];
  if (insertions.length + diagnostics.length + warnings.length === 0) return undefined;
  return {
    ...edited(file, insertions),
    sites: plans.map(siteOf),
    namespace,
    expressions: plans.flatMap((planned) => expressionOf(ts, file, planned)),
    diagnostics,
    warnings,
  };
}

function edited(
  { fileName, text }: TS.SourceFile,
  insertions: readonly Insertion[],
): Pick<Woven, "code" | "map" | "positions"> {
  const woven = new MagicString(text);
  for (const { at, pieces } of insertions) for (const { code } of pieces) woven.appendLeft(at, code);
  const code = woven.toString();
  return {
    code,
    map: () => woven.generateMap({ source: fileName, includeContent: true, hires: "boundary" }),
    positions: new Positions(text, code, insertions),
  };
}

/** Whether the file has no syntax error. The field is internal to TypeScript, and its declarations leave it out. */
function parses(file: TS.SourceFile & { readonly parseDiagnostics?: readonly unknown[] }): boolean {
  return (file.parseDiagnostics ?? []).length === 0;
}

/**
 * Returns the refusal of a file with a syntax error, if it has tags. Inserted code would make many errors of one. If the file is emitted,
 * it throws.
 */
function unparsed(ts: Parser, file: TS.SourceFile): Woven | undefined {
  const [mention] = findJoinPoints(ts, file).mentions;
  if (mention === undefined) return undefined;
  return refused(file, problem("unparsed", mention));
}

/** Returns a file that throws when it is loaded, instead of one that cannot be woven. */
function refused(file: TS.SourceFile, because: Problem): Woven {
  return {
    ...edited(file, refuseFile(file, because)),
    sites: [],
    namespace: undefined,
    expressions: [],
    diagnostics: [because],
    warnings: [],
  };
}

interface Planned {
  readonly plans: Plan[];
  readonly forbidden: Forbidden[];
  readonly bodiless: readonly Problem[];
  readonly diagnostics: Problem[];
  readonly warnings: Problem[];
}

function planAll(ts: Parser, file: TS.SourceFile, defaults: Defaults, isModule: boolean): Planned {
  const { points, forbidden, bodiless, problems: diagnostics, warnings } = findJoinPoints(ts, file);
  const planned: Planned = { plans: [], forbidden: [...forbidden], bodiless, diagnostics, warnings };
  const isWoven = wovenMark(ts, file);
  const noModule = !isModule && hasOnlyCommonJs(ts, file) ? "onlyCommonJs" : "notAModule";
  for (const point of points) {
    const { body } = point.fn;
    if (isWoven(body)) continue;
    const read = isModule ? plan(ts, file, point, defaults) : [problem(noModule, point.tag.word)];
    const result = Array.isArray(read) ? read : (sharedOtherwise(read, planned.plans) ?? read);
    const because = point.flaw ?? (Array.isArray(result) ? result[0] : undefined);
    if (Array.isArray(result)) planned.diagnostics.push(...result);
    if (because !== undefined) planned.forbidden.push({ body, because });
    else if (!Array.isArray(result)) {
      planned.plans.push(result);
      planned.warnings.push(...result.warnings);
    }
  }
  return planned;
}

/** Reports two tags with different numbers for the same key. The smaller number would apply, so one of the tags would be wrong. */
function sharedOtherwise({ sharing }: Plan, others: readonly Plan[]): Problem[] | undefined {
  if (sharing === undefined) return undefined;
  const other = others.find(
    (one) => one.sharing?.kind === sharing.kind && one.sharing.words !== sharing.words,
  );
  if (other?.sharing === undefined) return undefined;
  return [problem("sharedOtherwise", sharing.at, sharing.words, other.sharing.words, other.site)];
}

function insertionsFor(
  ts: Parser,
  file: TS.SourceFile,
  plans: readonly Plan[],
  forbidden: readonly Forbidden[],
  isModule: boolean,
  { module, findReExports, pathOf }: WeaveOptions,
): { readonly insertions: Insertion[]; readonly namespace: string | undefined } {
  // These are the names of all tags, because an outer function's lock must not hide a name that an inner function's tag uses.
  const words = new Set(plans.flatMap(({ names }) => [...names]));
  const namespace = freshName("lockweave", usedNamesIn(ts, file, file), words);
  const used = new Set([...words, namespace]);
  const locks = new Map(plans.map(({ fn }) => [fn, freshName("lock", usedNamesIn(ts, fn, file), used)]));
  const lockArguments = currentLockArguments(ts, file, plans, locks, findReExports);
  const insertionsOf = (planned: Plan | Forbidden): Insertion[] => {
    if ("because" in planned) return refuse(ts, file, planned, isModule ? namespace : undefined);
    const { fn } = planned;
    const names = { namespace, lock: locks.get(fn) ?? "lock", words };
    return [...(lockArguments.get(fn) ?? []), ...weaveFunction(ts, file, planned, names)];
  };
  // Inner functions come first. If two functions end at the same offset, the inner one's code must come before the outer one's.
  const insertions = [...plans, ...forbidden]
    .toSorted((a, b) => bodyOf(b).pos - bodyOf(a).pos)
    .flatMap(insertionsOf);
  const first = plans[0]?.at ?? forbidden[0]?.because;
  const importsRuntime = isModule && first !== undefined;
  if (importsRuntime)
    insertions.push(importRuntime(ts, file, module, namespace, first, requiredStores(plans, namespace)));
  // The keywords come last, so that nothing comes between them and their functions.
  const keywords = plans.flatMap((planned) => asyncKeyword(ts, file, planned));
  const all = [...insertions, ...keywords, ...handshakes(ts, file, findReExports, pathOf)];
  return {
    insertions: all.toSorted((a, b) => a.at - b.at),
    namespace: importsRuntime ? namespace : undefined,
  };
}

function siteOf(planned: Plan): WovenSite {
  const { site, at } = planned;
  return { name: site, start: at.start, end: at.end, plan: planned };
}

function expressionOf(ts: Parser, file: TS.SourceFile, { fn: { body }, named }: Plan): NamedExpression[] {
  if (named === undefined || ts.isBlock(body)) return [];
  return [{ name: named, value: { start: body.getStart(file), end: body.end } }];
}

function bodyOf(planned: Plan | Forbidden): TS.ConciseBody {
  return "fn" in planned ? planned.fn.body : planned.body;
}
