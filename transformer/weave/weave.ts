import MagicString from "magic-string";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { findJoinPoints, type Forbidden } from "../read/join-points";
import { freshName, identifiersIn } from "../read/names";
import type { Defaults } from "../read/options";
import { hasOnlyCommonJs } from "../read/module-syntax";
import { mayShakeHands, type HandedOn } from "../read/lockweave-calls";
import { plan, type Plan } from "../read/plan";
import { mayHaveTags, mentionsIn } from "../read/spelling";
import { wovenMark } from "../read/woven-mark";
import type { Insertion } from "../text/edits";
import { Positions } from "../text/positions";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { asyncKeyword } from "./async-keyword";
import { currentLockArguments } from "./current-lock";
import { handshakes, unreached } from "./handshake";
import { neededStores } from "./required-stores";
import { refuse, refuseFile, refuseToLoad } from "./refusal";
import { importRuntime, type ModuleFormat } from "./runtime-import";
import { weaveFunction } from "./lock-template";

export interface WeaveOptions {
  /** The compiler whose parser is used. */
  readonly ts: Parser;
  /** How the file takes in the runtime. */
  readonly module: ModuleFormat;
  /** For tags that do not say otherwise. */
  readonly defaults?: Defaults;
  /** What other modules than ours hand on of ours. */
  readonly handedOn?: HandedOn;
  /** The file, where it is parsed already. */
  readonly sourceFile?: TS.SourceFile;
  /** Returns the name by which the woven code speaks of the file. It must be the same on every machine. */
  readonly pathOf?: (fileName: string) => string | undefined;
}

/** A function that is locked in the woven code, and where its tag stands. */
export interface WovenSite extends Span {
  readonly name: string;
  readonly plan: Plan;
}

/** Whether the place in the text on disk is in the comment of a tag. */
export function isOfTag(sites: readonly WovenSite[], text: string, offset: number): boolean {
  return sites.some(({ start }) => start <= offset && offset < text.indexOf("*/", start));
}

/**
 * The compiler looks into a function that is an expression, and says what of it has the wrong type; of one with a
 * block, which a woven one has, it only says that the whole has.
 */
interface NamedExpression {
  readonly name: Span;
  readonly value: Span;
}

/** Of version 3. In our own words: who uses our types need not have those of what made it. */
interface WovenMap {
  readonly version: number;
  readonly file: string;
  sources: string[];
  sourcesContent?: string[];
  names: string[];
  readonly mappings: string;
  /** Its JSON, and that as a `data:` URL. */
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
  /** The name by which it takes in the runtime, if it does. */
  readonly namespace: string | undefined;
  /** A file with problems is woven all the same, but the functions that they concern refuse to run. */
  readonly diagnostics: readonly Problem[];
  /** Names whose value is a woven arrow function that was an expression. */
  readonly expressions: readonly NamedExpression[];
  /** What is likely to be a mistake, and no reason to fail a build. */
  readonly warnings: readonly Problem[];
}

/** Cheap, and never misses a file: most are not looked at any further. */
export function mayNeedWeave(text: string): boolean {
  return mayHaveTags(text) || mayShakeHands(text);
}

/**
 * Weaves the locks of one file into its text. Does not throw: what is wrong is in the diagnostics.
 *
 * @returns `undefined` when there is nothing to weave
 */
export function weave(fileName: string, text: string, options: WeaveOptions): Woven | undefined {
  if (!mayNeedWeave(text) && options.handedOn === undefined) return undefined;
  const { ts } = options;
  const file = options.sourceFile ?? ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
  try {
    return wovenFile(file, options);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // What walks the syntax has used up the stack.
    const [at = text.indexOf("configure")] = mentionsIn(text);
    return refused(file, problem("nestedTooDeeply", { start: at, end: at + 1 }));
  }
}

function wovenFile(file: TS.SourceFile, options: WeaveOptions): Woven | undefined {
  const { ts, handedOn, defaults = new Map() } = options;
  if (!parses(file)) return unparsed(ts, file);
  const isModule = ["script", "raised script"].includes(options.module) || ts.isExternalModule(file);
  const { plans, forbidden, bodiless, diagnostics, warnings: ofTags } = planAll(ts, file, defaults, isModule);
  const { insertions: inBodies, namespace } = insertionsFor(ts, file, plans, forbidden, isModule, options);
  // The file's refusal comes first, so that it does not separate a function from its `async` keyword.
  const insertions = [...refuseToLoad(file, bodiless), ...inBodies].toSorted((a, b) => a.at - b.at);
  const warnings = [...ofTags, ...unreached(ts, file, handedOn)];
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

/** TypeScript's own field, which its declarations leave out. */
function parses(file: TS.SourceFile & { readonly parseDiagnostics?: readonly unknown[] }): boolean {
  return (file.parseDiagnostics ?? []).length === 0;
}

/** Code inserted into what does not parse would make many errors of one. If it is emitted, it does not run. */
function unparsed(ts: Parser, file: TS.SourceFile): Woven | undefined {
  const [mention] = findJoinPoints(ts, file).mentions;
  if (mention === undefined) return undefined;
  return refused(file, problem("unparsed", mention));
}

/** A file that cannot be woven throws where it is loaded. */
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

/** Two numbers on one key: the smaller would count, and one of the two tags would not say what is so. */
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
  { module, handedOn, pathOf }: WeaveOptions,
): { readonly insertions: Insertion[]; readonly namespace: string | undefined } {
  // Of all tags: what an inner function's tag speaks of must not be hidden by an outer function's lock.
  const words = new Set(plans.flatMap(({ names }) => [...names]));
  const namespace = freshName("lockweave", identifiersIn(ts, file), words);
  const taken = new Set([...words, namespace]);
  const locks = new Map(plans.map(({ fn }) => [fn, freshName("lock", identifiersIn(ts, fn), taken)]));
  const lockArguments = currentLockArguments(ts, file, plans, locks, handedOn);
  const insertionsOf = (planned: Plan | Forbidden): Insertion[] => {
    if ("because" in planned) return refuse(ts, file, planned, isModule ? namespace : undefined);
    const { fn } = planned;
    const names = { namespace, lock: locks.get(fn) ?? "lock", words };
    return [...(lockArguments.get(fn) ?? []), ...weaveFunction(ts, file, planned, names)];
  };
  // Inner functions first: where two end at one place, the inner one's code comes before the outer one's.
  const insertions = [...plans, ...forbidden]
    .toSorted((a, b) => bodyOf(b).pos - bodyOf(a).pos)
    .flatMap(insertionsOf);
  const first = plans[0]?.at ?? forbidden[0]?.because;
  const takesInRuntime = isModule && first !== undefined;
  if (takesInRuntime)
    insertions.push(importRuntime(ts, file, module, namespace, first, neededStores(plans, namespace)));
  // The keywords come last: nothing gets between them and their functions.
  const keywords = plans.flatMap((planned) => asyncKeyword(ts, file, planned));
  const all = [...insertions, ...keywords, ...handshakes(ts, file, handedOn, pathOf)];
  return {
    insertions: all.toSorted((a, b) => a.at - b.at),
    namespace: takesInRuntime ? namespace : undefined,
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
