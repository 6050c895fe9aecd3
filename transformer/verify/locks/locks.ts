import type * as TS from "typescript";
import type { Parser, Source } from "../../parser/parser";
import { mayBeExpression } from "../../read/attributes";
import { NEED_NAME, TAG_NAME, type TagName } from "../../read/spelling";
import { bindingsOf, canonical, constantOf, essenceOf, withoutParentheses, type Essence } from "./canonical";
import { templateOf, waits } from "./forms";
import { checkedBy, isCheck } from "./needs";
import { beginsHeld, beginsReentrant, stepsAround, type Steps } from "./steps";

/** The woven code around the body of a function, or the check before it, as found in compiled code. */
export interface Lock {
  /** The tag for which it was woven. */
  readonly tag: TagName;
  readonly site: string;
  /** The file that contains it. */
  readonly file: string;
  /** The entries of the site's object, sorted by name. An expression is represented by its {@link Essence}. */
  readonly options: ReadonlyMap<string, unknown>;
  /** The exact text of the function's place, of the call that opens the lock, and of the steps around the body. */
  readonly exact: string;
  /** The part that no minifier changes: the options, and the steps. */
  readonly loose: string;
  /** What happens on failure, and whether there is a condition. */
  readonly steps: string;
  /** For each part of the key, the condition, and the value of a skip, if there are any: what no minifier changes. */
  readonly key: readonly Essence[];
  /** The body without the names in it. It distinguishes copies of one function from two functions. */
  readonly body: string;
  /** The names that the body reads. They are the same in code that is not woven. See {@link readsOf}. */
  readonly reads: string;
  /** The number of returns that do not wait for their value, which may be a promise. */
  readonly unawaited: number;
  /** The number of returns that wait for nothing, whatever their value. For example, a compiler may turn `{ ...a }` into a call. */
  readonly immediate: number;
}

/** The locks in the code, and the checks of locks that functions need. */
export interface Locks {
  readonly locks: readonly Lock[];
  readonly broken: readonly BrokenLock[];
}

/** A lock that is opened without the required steps around a body, or checked after a part of the body. */
interface BrokenLock {
  readonly site: string;
  /** Whether the function contains no `await` and no `yield`. Compilers for old targets write a state machine instead. */
  readonly isLowered: boolean;
}

/** Finds the locks in compiled JavaScript from any tool, minified or not. Comments and strings do not count. */
export function locksIn(ts: Parser, fileName: string, text: string): Locks {
  const locks: Lock[] = [];
  const broken: BrokenLock[] = [];
  if (!/\bsite\b|\\x73/.test(text)) return { locks, broken }; // An obfuscator writes `\x73\x69\x74\x65`.
  const file = ts.createSourceFile(
    fileName,
    text,
    { languageVersion: ts.ScriptTarget.Latest, jsDocParsingMode: ts.JSDocParsingMode.ParseNone },
    true,
  );
  const hasSite = (call: TS.CallExpression): boolean =>
    typeof siteOf(ts, call)?.options.get("site") === "string";
  const isBeforeLock = (node: TS.Node): boolean => isCheck(ts, node, hasSite);
  const visit = (node: TS.Node): void => {
    const args = ts.isCallExpression(node) ? siteOf(ts, node) : undefined;
    const site = args?.options.get("site");
    if (ts.isCallExpression(node) && args !== undefined && typeof site === "string") {
      const { options } = args;
      const steps = stepsAround(ts, node, isBeforeLock);
      const checked = steps === undefined ? checkedBy(ts, node, hasSite) : undefined;
      const beginsAsExpected =
        options.get("reentrant") === true || options.get("mode") === "read" ? beginsReentrant : beginsHeld;
      const isInside = steps !== undefined && beginsAsExpected(ts, steps);
      if (isInside) locks.push(lockOf({ ts, file }, site, args, steps));
      else if (checked !== undefined)
        locks.push(checkOf({ ts, file }, site, args, node, checked, isBeforeLock));
      else broken.push({ site, isLowered: isLowered(ts, node) });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { locks, broken };
}

function isLowered(ts: Parser, call: TS.Node): boolean {
  let node = call;
  while (!ts.isSourceFile(node) && !ts.isFunctionLike(node)) node = node.parent;
  return ts.forEachChild(node, (child) => waits(ts, child) || undefined) === undefined;
}

/** The arguments of `open`. */
interface OpenArguments {
  /** The constants in the site's object. A whole key is included without its values. */
  readonly options: ReadonlyMap<string, unknown>;
  /** The entries that are expressions. */
  readonly expressions: ReadonlyMap<string, TS.Expression>;
  /** The expressions of the values in the key. */
  readonly key: readonly TS.Expression[];
}

function siteOf(ts: Parser, { arguments: [object, ...parts] }: TS.CallExpression): OpenArguments | undefined {
  if (object === undefined || !ts.isObjectLiteralExpression(object)) return undefined;
  const entries = new Map<string, unknown>();
  const expressions = new Map<string, TS.Expression>();
  let key: readonly TS.Expression[] = parts;
  for (const property of object.properties) {
    const isShort = ts.isShorthandPropertyAssignment(property); // `{ signal }`
    if (!isShort && !ts.isPropertyAssignment(property)) return undefined;
    const { name } = property;
    if (!ts.isIdentifier(name) && !ts.isStringLiteral(name)) return undefined;
    const initializer = isShort ? property.name : property.initializer;
    const template = name.text === "key" ? templateOf(ts, initializer) : undefined;
    const constant = template === undefined ? constantOf(ts, initializer) : { value: template.kind };
    if (constant !== undefined) entries.set(name.text, constant.value);
    else if (name.text === "signal" || mayBeExpression(name.text)) expressions.set(name.text, initializer);
    else return undefined;
    if (template !== undefined) key = template.values;
  }
  const namespace = entries.get("businessFlag") ?? entries.get("key");
  if (typeof entries.get("site") !== "string" || typeof namespace !== "string") return undefined;
  return { options: entries, expressions, key };
}

// ---- what is compared -----------------------------------------------------------------------------------

function lockOf(
  { ts, file }: Source,
  site: string,
  { options, expressions, key }: OpenArguments,
  steps: Steps,
): Lock {
  const { owner, before, opening, when, loop, retry, tried } = steps;
  const around = [...before, opening, loop, tried.catchClause, tried.finallyBlock];
  const exact = [pathTo(ts, owner), ...around.map((node) => canonical(ts, node))];
  const declared = [...before, opening]
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations);
  const bindings = bindingsOf(ts, owner, declared);
  const essences = [...expressions].map(([name, value]) => [name, essenceOf(ts, value, bindings)] as const);
  const entries = [...options, ...essences].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const { action, failure, skipValue } = retry;
  const ending = JSON.stringify([action, failure !== undefined, when !== undefined, skipValue !== undefined]);
  const outside = [when, skipValue].filter((part) => part !== undefined);
  return {
    tag: TAG_NAME,
    site,
    file: file.fileName,
    options: new Map(entries),
    exact: exact.join("\n"),
    loose: JSON.stringify(entries) + ending,
    steps: ending,
    key: [...key, ...outside].map((part) => essenceOf(ts, part, bindings)),
    body: canonical(ts, tried.tryBlock, { withNames: false }),
    reads: essenceOf(ts, tried.tryBlock, bindings).reads,
    unawaited: returnsOf(ts, owner, tried.tryBlock, mayBePromise),
    immediate: returnsOf(ts, owner, tried.tryBlock, isImmediate),
  };
}

/** @param owner the function that checks with the call that its caller holds the lock */
function checkOf(
  { ts, file }: Source,
  site: string,
  { options, key }: OpenArguments,
  call: TS.CallExpression,
  owner: TS.FunctionLikeDeclaration,
  isSkipped: (node: TS.Node) => boolean,
): Lock {
  const bindings = bindingsOf(ts, owner, []);
  const entries = [...options].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    tag: NEED_NAME,
    site,
    file: file.fileName,
    options: new Map(entries),
    exact: [pathTo(ts, owner), canonical(ts, call)].join("\n"),
    loose: JSON.stringify(entries) + NEED_NAME,
    steps: NEED_NAME,
    key: key.map((part) => essenceOf(ts, part, bindings)),
    body: canonical(ts, owner.body, { withNames: false }),
    reads: owner.body === undefined ? "" : essenceOf(ts, owner.body, bindings, isSkipped).reads,
    unawaited: 0,
    immediate: 0,
  };
}

/** Returns the parameters and members that the body of a function reads, in the order in which it first reads them. */
export function readsOf(ts: Parser, fn: TS.SignatureDeclaration, body: TS.Node): string {
  return essenceOf(ts, body, bindingsOf(ts, fn, [])).reads;
}

/** Returns the place of the function in the file: the nodes around it, from the file inwards. */
function pathTo(ts: Parser, node: TS.Node): string {
  const labels: string[] = [];
  for (let at: TS.Node = node; !ts.isSourceFile(at); at = at.parent) {
    const { name } = at as { readonly name?: TS.Node };
    const label =
      name ?? (ts.isBinaryExpression(at) && node.pos >= at.operatorToken.end ? at.left : undefined);
    labels.push(`${at.kind} ${canonical(ts, label)}`);
  }
  return labels.toReversed().join(" > ");
}

function isAsyncGenerator(ts: Parser, owner: TS.SignatureDeclaration): boolean {
  const { asteriskToken, modifiers } = owner as Partial<TS.FunctionExpression>;
  const isAsync = modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
  return isAsync && asteriskToken !== undefined;
}

type IsCounted = (ts: Parser, value: TS.Expression) => boolean;

/** Returns the number of returned values in the body that count. An async generator awaits all of them, so none counts. */
function returnsOf(ts: Parser, owner: TS.SignatureDeclaration, body: TS.Block, isCounted: IsCounted): number {
  if (isAsyncGenerator(ts, owner)) return 0;
  const countIn = (node: TS.Node): number => {
    if (ts.isFunctionLike(node)) return 0;
    let count = 0;
    if (ts.isReturnStatement(node) && node.expression !== undefined) {
      count += valuesOf(ts, node.expression).filter((value) => isCounted(ts, value)).length;
    }
    ts.forEachChild(node, (child) => void (count += countIn(child)));
    return count;
  };
  return countIn(body);
}

/** Returns the expressions that may provide the value of this one. */
function valuesOf(ts: Parser, expression: TS.Expression): TS.Expression[] {
  const value = withoutParentheses(ts, expression);
  if (ts.isConditionalExpression(value)) {
    return [value.whenTrue, value.whenFalse].flatMap((each) => valuesOf(ts, each));
  }
  if (ts.isBinaryExpression(value)) {
    const { SyntaxKind: Kind } = ts;
    const { kind } = value.operatorToken;
    if (kind === Kind.CommaToken) return valuesOf(ts, value.right);
    const isLogical = [Kind.AmpersandAmpersandToken, Kind.BarBarToken, Kind.QuestionQuestionToken];
    if (isLogical.includes(kind)) return [value.left, value.right].flatMap((each) => valuesOf(ts, each));
  }
  return [value];
}

function mayBePromise(ts: Parser, value: TS.Expression): boolean {
  const isUnknown =
    ts.isIdentifier(value) ||
    ts.isCallExpression(value) ||
    ts.isNewExpression(value) ||
    ts.isPropertyAccessExpression(value) ||
    ts.isElementAccessExpression(value) ||
    ts.isTaggedTemplateExpression(value);
  return isUnknown && constantOf(ts, value) === undefined;
}

function isImmediate(ts: Parser, value: TS.Expression): boolean {
  return (
    !ts.isAwaitExpression(value) && !ts.isYieldExpression(value) && constantOf(ts, value)?.value !== null
  );
}
