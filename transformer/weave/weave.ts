import MagicString, { SourceMap } from "magic-string";
import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { findJoinPoints, type Forbidden, type JoinPoint } from "../read/join-points";
import { freshName, usedNamesIn } from "../read/names";
import type { Defaults } from "../read/attributes";
import { hasOnlyCommonJs, isJavaScript } from "../read/module-syntax";
import type { FindReExports } from "../read/meanings";
import { planNeed, type NeedPlan } from "../read/need";
import { plan, type Plan, type PlannedTag } from "../read/plan";
import { mayCallOurs, mayHaveTags, mayNeedHandshake, mentionsIn } from "../read/spelling";
import { needMark, wovenMark } from "../read/woven-mark";
import type { Insertion } from "../text/edits";
import { groupedBy } from "../text/grouped-by";
import { Positions } from "../text/positions";
import { startLater } from "../text/source-map";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { asyncKeyword, weaveFunction } from "./lock-template";
import { checksOf, weaveNeeds } from "./need-template";
import { currentLockArguments, handshakes, callsWithoutHandshake } from "./call-arguments";
import { expectedNeeds, requiredStores, importRuntime, type ModuleFormat } from "./runtime-import";
import { refuse, refuseFile, refuseToLoad } from "./refusal";

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

/** Whether the offset in the text on disk is in the comment of one of these tags. */
export function isOfTag(tags: readonly Span[], text: string, offset: number): boolean {
  return tags.some(({ start }) => start <= offset && offset < text.indexOf("*/", start));
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
  /** The locks that functions need, in the order of their tags. */
  readonly needs: readonly NeedPlan[];
  /** The positions of the tags of both kinds. */
  readonly tags: readonly Span[];
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
  return mayHaveTags(text) || mayNeedHandshake(text);
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
    return wovenFile({ ts, file }, options);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // A recursive walk of the syntax overflowed the stack.
    const [at = text.indexOf("configure")] = mentionsIn(text);
    return refused(file, problem("nestedTooDeeply", { start: at, end: at + 1 }));
  }
}

function wovenFile(source: Source, options: WeaveOptions): Woven | undefined {
  const { ts, file } = source;
  const { findReExports, defaults = new Map() } = options;
  const [syntaxError] = syntaxErrorsIn(file);
  if (syntaxError !== undefined) return unparsed(source, syntaxError);
  const isModule = ["script", "raised script"].includes(options.module) || ts.isExternalModule(file);
  const planning = planAll(source, defaults, isModule);
  const { plans, needs, bodiless, diagnostics, warnings: ofTags } = planning;
  const { insertions: inBodies, namespace } = insertionsFor(source, planning, isModule, options);
  // The file's refusal comes first, so that it does not separate a function from its `async` keyword.
  const [ofNoBody] = bodiless;
  const refusal = ofNoBody === undefined ? [] : refuseToLoad(file, ofNoBody);
  const insertions = [...refusal, ...inBodies].toSorted((a, b) => a.at - b.at);
  const warnings = [
    ...ofTags,
    ...(mayHaveCalls(file, options) ? callsWithoutHandshake(source, findReExports) : []),
  ];
  if (insertions.length + diagnostics.length + warnings.length === 0) return undefined;
  return {
    ...edited(file, insertions),
    sites: plans.map(siteOf),
    needs,
    tags: [...plans, ...needs].map(({ at }) => at),
    namespace,
    expressions: plans.flatMap((planned) => expressionOf(source, planned)),
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
  const positions = new Positions(text, code, insertions);
  return {
    code,
    map: () => {
      const map = woven.generateDecodedMap({ source: fileName, includeContent: true, hires: "boundary" });
      positions.addTo(map.mappings);
      startLater(map.mappings, () => positions);
      return new SourceMap(map);
    },
    positions,
  };
}

interface ParseError {
  readonly code: number;
  readonly start: number;
  readonly length: number;
  readonly messageText: string | TS.DiagnosticMessageChain;
}

/** Returns the syntax errors of the file. The field is internal to TypeScript, and its declarations leave it out. */
function syntaxErrorsIn(
  file: TS.SourceFile & { readonly parseDiagnostics?: readonly ParseError[] },
): readonly ParseError[] {
  const errors = file.parseDiagnostics ?? [];
  return isJavaScript(file) ? errors.filter(({ code }) => !ALLOWED_IN_COMMONJS.has(code)) : errors;
}

/** The codes for `0755`, `"\033"`, `"\8"`, and `089`. CommonJS may contain them, and ES modules with them do not run. */
const ALLOWED_IN_COMMONJS: ReadonlySet<number> = new Set([1121, 1487, 1488, 1489]);

/**
 * Returns the refusal of a file with a syntax error, if it has tags. Inserted code would turn one error into many. If the file is emitted,
 * it throws.
 */
function unparsed(source: Source, { start, length, messageText }: ParseError): Woven | undefined {
  if (findJoinPoints(source).mentions.length === 0) return undefined;
  const reason = typeof messageText === "string" ? messageText : messageText.messageText;
  return refused(source.file, problem("unparsed", { start, end: start + length }, reason));
}

/** Returns a file that throws when it is loaded, instead of one that cannot be woven. */
function refused(file: TS.SourceFile, because: Problem): Woven {
  return {
    ...edited(file, refuseFile(file, because)),
    sites: [],
    needs: [],
    tags: [],
    namespace: undefined,
    expressions: [],
    diagnostics: [because],
    warnings: [],
  };
}

interface Planned {
  readonly plans: readonly Plan[];
  readonly needs: readonly NeedPlan[];
  readonly forbidden: readonly Forbidden[];
  readonly bodiless: readonly Problem[];
  readonly diagnostics: Problem[];
  readonly warnings: Problem[];
}

function planAll(source: Source, defaults: Defaults, isModule: boolean): Planned {
  const found = findJoinPoints(source);
  const diagnostics = [...found.problems];
  const warnings = [...found.warnings];
  const forbidden = [...found.forbidden];
  const plans: Plan[] = [];
  const needs: NeedPlan[] = [];
  const noModule = !isModule && hasOnlyCommonJs(source) ? "onlyCommonJs" : "notAModule";
  const planPoint = <Read extends PlannedTag & { readonly warnings: readonly Problem[] }>(
    { fn: { body }, tag, flaw }: JoinPoint,
    read: () => Read | Problem[],
  ): Read[] => {
    const result = isModule ? read() : [problem(noModule, tag.word, tag.word.text)];
    const because = flaw ?? (Array.isArray(result) ? result[0] : undefined);
    if (Array.isArray(result)) diagnostics.push(...result);
    if (because !== undefined) forbidden.push({ body, because });
    if (because !== undefined || Array.isArray(result)) return [];
    warnings.push(...result.warnings);
    return [result];
  };
  const isWoven = wovenMark(source);
  for (const point of found.points) {
    if (isWoven(point.fn.body)) continue;
    const read = (): Plan | Problem[] => {
      const result = plan(source, point, defaults);
      return Array.isArray(result) ? result : (sharedOtherwise(result, plans) ?? result);
    };
    plans.push(...planPoint(point, read));
  }
  const isChecked = needMark(source);
  for (const point of found.needs) {
    if (!isChecked(point.fn.body)) needs.push(...planPoint(point, () => planNeed(source, point, defaults)));
  }
  // A function may have several tags. If one of them is wrong, the function only refuses to run.
  const refusing = new Set(forbidden.map(({ body }) => body));
  const isAllowed = ({ fn }: PlannedTag): boolean => !refusing.has(fn.body);
  const { bodiless } = found;
  return {
    bodiless,
    diagnostics,
    warnings,
    plans: plans.filter(isAllowed),
    needs: needs.filter(isAllowed),
    forbidden: forbidden.filter(
      (one, index) => forbidden.findIndex(({ body }) => body === one.body) === index,
    ),
  };
}

/** Reports two tags with different numbers for the same key. The smaller number would apply, so one of the tags would be wrong. */
function sharedOtherwise({ sharing }: Plan, others: readonly Plan[]): Problem[] | undefined {
  if (sharing?.words === undefined) return undefined;
  for (const { sharing: other, site } of others) {
    if (other?.words === undefined || other.kind !== sharing.kind || other.words === sharing.words) continue;
    return [problem("sharedOtherwise", sharing.at, sharing.words, other.words, site)];
  }
  return undefined;
}

function insertionsFor(
  source: Source,
  { plans, needs, forbidden }: Planned,
  isModule: boolean,
  options: WeaveOptions,
): { readonly insertions: Insertion[]; readonly namespace: string | undefined } {
  const { file } = source;
  const { module, findReExports, pathOf } = options;
  const mayCall = mayHaveCalls(file, options);
  // These are the names of all tags, because an outer function's lock must not hide a name that an inner function's tag uses.
  const tags: readonly PlannedTag[] = [...plans, ...needs];
  const words = new Set(tags.flatMap(({ names }) => [...names]));
  const namespace = freshName("lockweave", usedNamesIn(source, file), words);
  const used = new Set([...words, namespace]);
  const locks = new Map(plans.map(({ fn }) => [fn, freshName("lock", usedNamesIn(source, fn), used)]));
  const lockArguments = mayCall ? currentLockArguments(source, plans, locks, findReExports) : undefined;
  const insertionsOf = (planned: Plan | Forbidden | readonly NeedPlan[]): Insertion[] => {
    if (isList(planned)) return weaveNeeds(source, planned, namespace);
    if ("because" in planned) return refuse(source, planned, isModule ? namespace : undefined);
    const { fn } = planned;
    const names = { namespace, lock: locks.get(fn) ?? "lock", words };
    const checks = checksOf(
      needs.filter((need) => need.fn === fn),
      namespace,
    );
    return [...(lockArguments?.get(fn) ?? []), ...weaveFunction(source, planned, names, checks)];
  };
  const onlyChecked = needs.filter(({ fn }) => !locks.has(fn));
  // Inner functions come first. If two functions end at the same offset, the inner one's code must come before the outer one's.
  const insertions = [...plans, ...forbidden, ...groupedBy(onlyChecked, ({ fn }) => fn).values()]
    .toSorted((a, b) => bodyOf(b).pos - bodyOf(a).pos)
    .flatMap(insertionsOf);
  const first = tags[0]?.at ?? forbidden[0]?.because;
  const importsRuntime = isModule && first !== undefined;
  if (importsRuntime) {
    const then = [...requiredStores(tags, namespace), ...expectedNeeds(needs, namespace)];
    insertions.push(importRuntime(source, module, namespace, first, then));
  }
  // The keywords come last, so that nothing comes between them and their functions.
  const keywords = plans.flatMap((planned) => asyncKeyword(source, planned));
  const ofCalls = mayCall ? handshakes(source, findReExports, pathOf) : [];
  return {
    insertions: [...insertions, ...keywords, ...ofCalls].toSorted((a, b) => a.at - b.at),
    namespace: importsRuntime ? namespace : undefined,
  };
}

/** Whether the file may have calls of our functions that get an argument. Few files have any. */
function mayHaveCalls({ text }: TS.SourceFile, { findReExports }: WeaveOptions): boolean {
  return findReExports !== undefined || mayCallOurs(text);
}

function siteOf(planned: Plan): WovenSite {
  const { site, at } = planned;
  return { name: site, start: at.start, end: at.end, plan: planned };
}

function expressionOf({ ts, file }: Source, { fn: { body }, named }: Plan): NamedExpression[] {
  if (named === undefined || ts.isBlock(body)) return [];
  return [{ name: named, value: { start: body.getStart(file), end: body.end } }];
}

function bodyOf(planned: Plan | Forbidden | readonly NeedPlan[]): TS.ConciseBody {
  const one = isList(planned) ? planned[0] : planned;
  if (one === undefined) throw new TypeError("A group of tags has at least one.");
  return "fn" in one ? one.fn.body : one.body;
}

function isList(planned: Plan | Forbidden | readonly NeedPlan[]): planned is readonly NeedPlan[] {
  return Array.isArray(planned);
}
