import { Session, type Profiler } from "node:inspector";
import { findSourceMap } from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

// Counts how often each block of the runtime and of the analysis runs. Unlike a time, a count does not depend on the speed of the machine.
// A test imports this file first, because V8 counts blocks only in functions that it compiles after the counting begins.

const ROOT = join(__dirname, "../..");
const COUNTED = [join(ROOT, "runtime/"), join(ROOT, "transformer/analyze/")];

const session = new Session();
session.connect();
post("Profiler.enable");
startCounting();

function startCounting(): void {
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
}

/** Calls the inspector, which replies before the call returns. */
function post(method: string, parameters: object = {}): unknown {
  let answer: { readonly error: Error | null; readonly reply: object | undefined } | undefined;
  session.post(method, parameters, (error, reply) => (answer = { error, reply }));
  if (answer === undefined) throw new Error(`${method}: no reply`);
  if (answer.error !== null) throw answer.error;
  return answer.reply;
}

/** A block of a compiled file, and how often it ran. */
interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
  readonly functionName: string;
}

interface Script {
  /** In the order of their starts. Of two with the same start, the outer one comes first. */
  readonly ranges: readonly Range[];
}

/** A built-in function that the counted code called, and how many items it went through. */
interface BuiltIn {
  readonly name: string;
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly items: number;
}

/** What the counted code did during one operation. */
export interface Work {
  /** By the path of the file. */
  readonly scripts: ReadonlyMap<string, Script>;
  readonly builtIns: ReadonlyMap<string, BuiltIn>;
}

/** Counts what the runtime and the analysis do during the operation. Nothing else may use them meanwhile. */
export async function workOf(operation: () => Promise<unknown>): Promise<Work> {
  const builtIns = new Map<string, BuiltIn>();
  startCounting(); // Drops optimized code, which does not count its calls.
  takeCounts();
  const stop = countBuiltIns(builtIns);
  try {
    await operation();
  } finally {
    stop();
  }
  return { scripts: takeCounts(), builtIns };
}

/** Returns the counts since the last call. */
function takeCounts(): Map<string, Script> {
  const { result } = post("Profiler.takePreciseCoverage") as Profiler.TakePreciseCoverageReturnType;
  const scripts = new Map<string, Script>();
  for (const { url, functions } of result) {
    const path = url.startsWith("file:") ? fileURLToPath(url) : url;
    if (!isCounted(path)) continue;
    const ranges = functions.flatMap((one) => one.ranges.map((range) => ({ ...range, ...named(one) })));
    const sorted = ranges.toSorted((one, other) => {
      return one.startOffset - other.startOffset || other.endOffset - one.endOffset;
    });
    scripts.set(path, { ranges: sorted });
  }
  return scripts;
}

function isCounted(path: string): boolean {
  return COUNTED.some((folder) => path.startsWith(folder));
}

function named({ functionName }: Profiler.FunctionCoverage): Pick<Range, "functionName"> {
  return { functionName: functionName === "" ? "(anonymous)" : functionName };
}

/** How often the code at this offset ran: the count of the innermost range around it. */
function countAt(script: Script | undefined, offset: number): number {
  let count = 0;
  for (const range of script?.ranges ?? []) {
    if (range.startOffset > offset) break;
    if (offset < range.endOffset) ({ count } = range);
  }
  return count;
}

// ---- built-in functions -------------------------------------------------------------------------------

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** Functions whose work grows with an array, and that call none of the counted code for each item. */
const OF_ARRAYS =
  "concat copyWithin fill flat includes indexOf join lastIndexOf reverse shift slice splice toReversed toSpliced unshift with";

const ITERATORS = [
  ["array", Object.getPrototypeOf([].values())],
  ["Map", Object.getPrototypeOf(new Map().values())],
  ["Set", Object.getPrototypeOf(new Set().values())],
] as const;

/** @returns a function that stops the counting */
function countBuiltIns(counts: Map<string, BuiltIn>): () => void {
  const ends = OF_ARRAYS.split(" ").map((name) => {
    return replace(Array.prototype, name, (array) => note(counts, name, (array as unknown[]).length));
  });
  for (const [name, prototype] of ITERATORS) {
    ends.push(replace(prototype as object, "next", () => note(counts, `step of a ${name}`, 1)));
  }
  for (const name of ["keys", "values", "entries"] as const) {
    const items = (object: unknown): number => Reflect.ownKeys(Object(object) as object).length;
    ends.push(replace(Object, name, (_, [object]) => note(counts, `Object.${name}`, items(object))));
  }
  return () => {
    for (let at = 0; at < ends.length; at += 1) ends[at]?.();
  };
}

function replace(
  owner: object,
  name: string,
  onCall: (self: unknown, args: readonly unknown[]) => void,
): () => void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name);
  const original = descriptor?.value as AnyFunction | undefined;
  if (descriptor === undefined || original === undefined) throw new Error(`no function ${name}`);
  const counted: AnyFunction = function (...args) {
    onCall(this, args);
    return Reflect.apply(original, this, args);
  };
  Object.defineProperty(owner, name, { ...descriptor, value: counted });
  return () => void Object.defineProperty(owner, name, descriptor);
}

let isNoting = false;

/** Records a call by the counted code. It ignores calls by itself, and by Node for the stack trace. */
function note(counts: Map<string, BuiltIn>, name: string, items: number): void {
  if (isNoting) return;
  isNoting = true;
  try {
    const site = callSites().find((one) => isCounted(one.getFileName() ?? ""));
    if (site === undefined) return;
    const at = {
      path: site.getFileName() ?? "",
      line: site.getLineNumber() ?? 1,
      column: site.getColumnNumber() ?? 1,
    };
    const id = `${name} ${at.path}:${at.line}:${at.column}`;
    const before = counts.get(id)?.items ?? 0;
    counts.set(id, { name, ...at, items: before + items });
  } finally {
    isNoting = false;
  }
}

function callSites(): readonly NodeJS.CallSite[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.prepareStackTrace = (_, sites) => sites;
  Error.stackTraceLimit = 12;
  const { stack } = new Error();
  Error.prepareStackTrace = prepareStackTrace;
  Error.stackTraceLimit = stackTraceLimit;
  return stack as unknown as readonly NodeJS.CallSite[];
}

// ---- growth -------------------------------------------------------------------------------------------

/** Code that ran more often with many items than with few, and how often it ran. */
export interface Growth {
  /** `runtime/base/fifo.ts:69 keys`, or with the name of a built-in function that is called there. */
  readonly where: string;
  readonly few: number;
  readonly many: number;
}

/**
 * Returns all code that ran too often with many items.
 *
 * @param most the allowed number of runs with many items, given the number with few
 */
export function growth(few: Work, many: Work, most: (few: number) => number): readonly Growth[] {
  return [...grownBlocks(few, many), ...grownBuiltIns(few, many)].filter((one) => one.many > most(one.few));
}

function grownBlocks(few: Work, many: Work): readonly Growth[] {
  return Array.from(many.scripts).flatMap(([path, script]) => {
    const grown = script.ranges.flatMap(({ startOffset, count, functionName }) => {
      const before = countAt(few.scripts.get(path), startOffset);
      return count > before ? [{ startOffset, functionName, few: before, many: count }] : [];
    });
    if (grown.length === 0) return [];
    const lineBreaks = lineBreaksOf(path);
    return grown.map(({ startOffset, functionName, few: before, many: now }): Growth => {
      const line = lineBreaks.findIndex((at) => at >= startOffset);
      const column = startOffset - (lineBreaks[line - 1] ?? -1) - 1;
      return { where: `${placeOf(path, line, column)} ${functionName}`, few: before, many: now };
    });
  });
}

/** The offsets at which the lines of the compiled file end. The debugger also knows the text, but using it ends the counting. */
function lineBreaksOf(path: string): readonly number[] {
  const map = findSourceMap(path) as { readonly lineLengths?: readonly number[] } | undefined;
  let offset = -1;
  return (map?.lineLengths ?? []).map((length) => (offset += length + 1));
}

function grownBuiltIns(few: Work, many: Work): readonly Growth[] {
  return Array.from(many.builtIns).flatMap(([id, { name, path, line, column, items }]): Growth[] => {
    const before = few.builtIns.get(id)?.items ?? 0;
    if (items <= before) return [];
    return [{ where: `${placeOf(path, line - 1, column - 1)} (${name})`, few: before, many: items }];
  });
}

/** @param line of the compiled file, from 0, as is `column` */
function placeOf(path: string, line: number, column: number): string {
  const entry = findSourceMap(path)?.findEntry(line, column);
  const sourceLine = entry !== undefined && "originalLine" in entry ? entry.originalLine + 1 : "?";
  return `${relative(ROOT, path)}:${sourceLine}`;
}
