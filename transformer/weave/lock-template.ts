import type * as TS from "typescript";
import type { Source } from "../parser/parser";
import type { ExtractedBody } from "../read/body";
import { isJavaScript } from "../read/module-syntax";
import type { KeyPart } from "../read/key";
import { freshName, identifiersIn, namesIn } from "../read/names";
import type { Plan, PlannedTag } from "../read/plan";
import { type Insertion, type Piece, stringLiteral, unmapped } from "../text/edits";
import { onOneLine } from "./one-line";
import { isSettled, returnsOf, scopeInside } from "../read/returns";
import { type LockableFunction, directives, isAsync } from "../read/syntax";

/** The names of the runtime and the lock in the woven code. */
export interface Names {
  readonly namespace: string;
  readonly lock: string;
  /** The names that tags bring into the code. */
  readonly words: ReadonlySet<string>;
}

/**
 * Given
 *
 *     async pay(orderNo) {
 *       BODY
 *     }
 *
 * produces, on the same lines,
 *
 *     async pay(orderNo) {
 *       const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder" }, orderNo);
 *       while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
 *       try {
 *         lockweave.assertHeld(lock);
 *         BODY, with `return await`
 *       } catch (error) {
 *         throw lockweave.fail(lock, error);
 *       } finally {
 *         await lockweave.release(lock);
 *       }
 *     }
 *
 * A parameter whose narrowed type must reach into functions of the body becomes a variable of the body:
 * `const limit_1 = limit, lock = ...; ... try { ...; let limit = limit_1; BODY`.
 *
 * With the whole key `key="mutex:${orderNo}"`, the lock is opened with
 * `lockweave.open({ site: "OrderService.pay", key: lockweave.wholeKey`mutex:${orderNo}` })`.
 *
 * With `lockTime="${config.lockTime}"` or `signal=request.signal`, the value is an expression, which is evaluated once:
 * `lockweave.open({ ..., lockTime: config.lockTime, signal: request.signal }, orderNo)`. If it may replace a default of the project, that
 * default is there, too: `projectDefaults: "lockTime=30s"`.
 *
 * With `when="order.amount > 100"`, there may be no lock, and every step allows for that:
 * `const lock = lockweave.when(order.amount > 100) ? lockweave.open({ ... }, orderNo) : lockweave.unlocked();`.
 *
 * With `onFailure=skip skipValue="SKIPPED"`, the call that is skipped returns the value of the expression:
 * `if (!(await lockweave.retryCheck(lock))) return (SKIPPED);`.
 *
 * An async generator acquires the lock at the first `next()`, and releases it at its end, or at `return()` or `throw()`. It awaits the value
 * that it returns, but not if esbuild has compiled it for engines without async generators.
 *
 * @param checks the code that checks the locks that the function needs
 */
export function weaveFunction(
  source: Source,
  plan: Plan,
  names: Names,
  checks: readonly Piece[] = [],
): Insertion[] {
  const { ts, file } = source;
  const { body } = plan.fn;
  const { extracted } = plan;
  const narrowed = copiesOf(source, plan, plan.narrowed, names);
  const before = [
    ...checks,
    ...head(plan, names, narrowed),
    ...(extracted === undefined ? [] : headOfBody(source, plan, extracted, names)),
  ];
  const closeBody = plan.reentrant ? "); " : ")(); ";
  const variables = narrowed.flatMap(({ declared, copy }) =>
    [glue(plan, " let ")].concat(declared, glue(plan, ` = ${copy};`)),
  );
  const after = [...(extracted === undefined ? [] : [glue(plan, closeBody)]), ...tail(plan, names)];
  if (ts.isBlock(body)) {
    const [open, close] = extracted === undefined ? ["", ""] : [" {", "}"];
    return [
      startOfBody(source, body, [...before, glue(plan, open), ...variables]),
      ...(extracted === undefined ? awaitedReturns(source, plan.fn) : []),
      { at: body.end - 1, pieces: [mapped(plan, close), ...after] },
    ];
  }
  const value = { start: body.getStart(file), end: body.end };
  // These pieces belong to the value, so that errors in what it returns are reported there.
  const ofValue = (code: string): Piece => ({ code, from: value, exact: false });
  const start = startOfExpression(source, body);
  // After a comment with a line break, a plain `return` would return nothing.
  const [returns, ends] = start === value.start ? ["return ", "; "] : ["return (", "); "];
  return [
    // The code goes directly after the arrow, so that a comment before the value stays with the value.
    { at: body.pos, pieces: [glue(plan, " {"), ...before, ...variables] },
    ...(extracted === undefined ? [{ at: start, pieces: [ofValue(returns)] }] : []),
    ...(extracted === undefined ? awaited(source, plan.fn, body) : []),
    {
      at: body.end,
      pieces: [...(extracted === undefined ? [ofValue(ends)] : []), ...after, mapped(plan, "}")],
    },
  ];
}

/** Returns the code before the body: `const lock = open(...); while (!acquire) retryCheck; try { assertHeld;`. */
function head(plan: Plan, { namespace, lock }: Names, narrowed: readonly Copy[]): Piece[] {
  const { action, returns, value, failure, at } = plan.onFailure;
  const retryCheck = mapped(plan, `await ${namespace}.retryCheck`);
  const skipped: Piece[] =
    value === undefined
      ? [unmapped({ code: returns, from: at, exact: false })]
      : [unmapped({ code: "return (", from: value.from, exact: false }), unmapped(value), glue(plan, ");")];
  const retry: Piece[] =
    action === "skip"
      ? [glue(plan, "if (!("), retryCheck, mapped(plan, `(${lock}))) `), ...skipped]
      : [
          // Without `void`, the statement would start at `await`, which stack traces show. So that position must be mapped.
          glue(plan, "void ("),
          retryCheck,
          glue(plan, `(${lock}`),
          ...(failure === undefined ? [] : [glue(plan, ", "), failure]),
          glue(plan, "));"),
        ];
  const saved = narrowed.map(({ parameter, copy }) => `${copy} = ${parameter}, `).join("");
  const kind = plan.fn.asteriskToken === undefined ? "" : `, "generator"`;
  return [
    mapped(plan, ` const ${saved}${lock} = `),
    ...(plan.when === undefined
      ? [mapped(plan, `${namespace}.open`)]
      : [glue(plan, `${namespace}.when(`), plan.when, glue(plan, `) ? ${namespace}.open`)]),
    glue(plan, `({ ${plan.options.join(", ")}`),
    ...(plan.projectDefaults === undefined
      ? []
      : [glue(plan, `, projectDefaults: ${stringLiteral(plan.projectDefaults)}`)]),
    ...plan.expressions.flatMap(({ name, pieces }) => [
      { code: `, ${name}: `, from: pieces[0]?.from ?? plan.at, exact: false },
      ...pieces,
    ]),
    ...wholeKey(plan, namespace),
    glue(plan, " }"),
    ...plan.key.flatMap((part) => [
      glue(plan, ", "),
      ...keyPart(plan, part, namespace).map((piece) => (plan.when === undefined ? piece : unmapped(piece))),
    ]),
    glue(plan, plan.when === undefined ? ")" : `) : ${namespace}.unlocked()`),
    glue(plan, "; while (!("),
    mapped(plan, `await ${namespace}.acquire(${lock}))) `),
    ...retry,
    mapped(plan, " "),
    // Other code may have blocked the process since the lock was acquired. `runReentrant` has its own check.
    glue(plan, plan.reentrant ? "try {" : `try { ${namespace}.assertHeld(${lock}${kind});`),
  ];
}

/** Returns the entry for a whole key: ``, key: lockweave.wholeKey`mutex:${orderNo}` ``. */
export function wholeKey(plan: PlannedTag, namespace: string): readonly Piece[] {
  if (plan.wholeKey === undefined) return [];
  return [glue(plan, `, key: ${namespace}.wholeKey\``), ...plan.wholeKey.pieces, glue(plan, "`")];
}

export function keyPart(
  plan: PlannedTag,
  { pieces, jsonField }: KeyPart,
  namespace: string,
): readonly Piece[] {
  if (jsonField === undefined) return pieces;
  const path = stringLiteral(jsonField.text);
  const field: Piece = { code: `, ${path}, ${stringLiteral(plan.site)})`, from: jsonField, exact: false };
  return [mapped(plan, `${namespace}.jsonField(`), ...pieces, field];
}

/**
 * Returns the code before the body's own brace. Given `async pay(orderNo, limit) { limit ??= 3; BODY }`, that is
 *
 *     const limit_1 = limit; return await (async (limit = limit_1): Promise<void> => {
 */
function headOfBody(
  source: Source,
  plan: Plan,
  { isAsync: isOwnAsync, type, isVoid, assigned, isVariadic }: ExtractedBody,
  names: Names,
): readonly Piece[] {
  const { file } = source;
  const { namespace, lock } = names;
  // An error in the function's signature occurs in the inner function, too. It is reported at the outer one's type, name, or modifier.
  const { name, modifiers } = plan.fn;
  const own = type ?? name ?? modifiers?.[0];
  const from = own === undefined ? plan.at : { start: own.getStart(file), end: own.end };
  const copies = copiesOf(source, plan, assigned, names);
  const saved = copies.map(({ parameter, copy }) => ` const ${copy} = ${parameter};`).join("");
  const ofOwn = (code: string): Piece => ({ code, from, exact: false });
  const parameters = copies.flatMap(({ declared, copy }, index) =>
    (index === 0 ? [] : [ofOwn(", ")]).concat(declared, ofOwn(` = ${copy}`)),
  );
  const returned = type && typePiece(source, type);
  const isDocumented = isJavaScript(file); // JavaScript has the type in a comment.
  const documented = returned && isDocumented ? [ofOwn("/** @returns {"), returned, ofOwn("} */ ")] : [];
  const returns = `${isVariadic ? "void arguments; " : ""}${isVoid ? "await" : "return await"}`;
  return [
    mapped(plan, `${saved} ${returns} ${plan.reentrant ? `${namespace}.runReentrant(${lock}, ` : "("}`),
    ...documented,
    ofOwn(isOwnAsync ? "async (" : "("),
    ...parameters,
    ofOwn(")"),
    ...(returned && !isDocumented ? [ofOwn(": "), returned] : []),
    glue(plan, " =>"),
  ];
}

/**
 * Returns the type as a piece of code. If it is exact, errors in it map to the same text as errors in the original type, so that each is
 * reported once.
 */
function typePiece(source: Source, type: TS.TypeNode): Piece {
  const { file } = source;
  const code = onOneLine(source, type);
  return { code, from: { start: type.getStart(file), end: type.end }, exact: code === type.getText(file) };
}

interface Copy {
  readonly parameter: string;
  /**
   * The parameter, with its type if it has a default. The type may allow more than the value that it begins with: `id: string | undefined`.
   */
  readonly declared: readonly Piece[];
  readonly copy: string;
}

function copiesOf(
  source: Source,
  { fn, at, typeOf }: Plan,
  parameters: readonly string[],
  { namespace, lock, words }: Names,
): readonly Copy[] {
  const { ts, file } = source;
  if (parameters.length === 0) return [];
  const used = new Set([...identifiersIn(ts, fn), namespace, lock]);
  const declarations = fn.parameters.flatMap(({ name }) => namesIn(ts, name));
  return parameters.map((parameter) => {
    const defaulted = fn.parameters.find(
      ({ name, initializer }) =>
        initializer !== undefined && ts.isIdentifier(name) && name.text === parameter,
    );
    const type = defaulted && typeOf(defaulted);
    const name = declarations.find(({ text }) => text === parameter);
    const from = name === undefined ? at : { start: name.getStart(file), end: name.end };
    const ofName = (code: string): Piece => ({ code, from, exact: false });
    const declared = declaration(ofName, parameter, type && typePiece(source, type), isJavaScript(file));
    return { parameter, declared, copy: freshName(`${parameter}_1`, used, words) };
  });
}

function declaration(
  ofName: (code: string) => Piece,
  name: string,
  type: Piece | undefined,
  isJavaScriptFile: boolean,
): Piece[] {
  if (type === undefined) return [ofName(name)];
  if (isJavaScriptFile) return [ofName("/** @type {"), type, ofName(`} */ ${name}`)];
  return [ofName(`${name}: `), type];
}

function tail(plan: Plan, { namespace, lock }: Names): Piece[] {
  return [
    glue(plan, "} "),
    glue(plan, "catch (error"),
    mapped(plan, ") { "),
    glue(plan, `throw ${namespace}.fail(${lock}, error); `),
    mapped(plan, "} finally { "),
    glue(plan, `await ${namespace}.release(${lock}); }`),
    glue(plan, " "),
  ];
}

/**
 * Returns code that source maps leave out, so that coverage tools do not count it. They look up the start of each statement and block. So that
 * part of each step that a test may not reach is left out. The code before it is mapped, because tools that combine source maps keep only the
 * first of several positions that are left out.
 */
export function glue({ at }: PlannedTag, code: string): Piece {
  return unmapped({ code, from: at, exact: false });
}

/** Returns code that source maps lead to the place where it is inserted. */
export function mapped({ at }: PlannedTag, code: string): Piece {
  return { code, from: at, exact: false };
}

// ---- insertions into the body ----------------------------------------------------------------------------

/**
 * Adds `await` to the returns of the body. Without it, `return work()` inside `try { } finally { }` would run `finally` before the promise
 * settles. Nested functions keep their own returns.
 */
function awaitedReturns(source: Source, fn: LockableFunction): Insertion[] {
  return returnsOf(source.ts, fn).flatMap((found) => addAwait(source, found.expression, found.isSettled));
}

/** Returns the insertions that make `await expression` of the function's body. There are none if the expression cannot be a promise. */
function awaited(source: Source, fn: LockableFunction, expression: TS.Expression): Insertion[] {
  const { ts } = source;
  const scope = scopeInside(ts, fn);
  const isPartSettled = (part: TS.Expression): boolean => isSettled(ts, part, scope);
  return isPartSettled(expression) ? [] : addAwait(source, expression, isPartSettled);
}

/**
 * Adds an `await` to each branch separately, because the compiler checks each branch. In `(await (a ? b : c))`, an `any` would hide the
 * type of `c`.
 */
function addAwait(
  source: Source,
  expression: TS.Expression,
  isPartSettled: (part: TS.Expression) => boolean,
): Insertion[] {
  const { ts, file } = source;
  const branches = branchesOf(source, expression);
  if (branches !== undefined) {
    return branches.flatMap((branch) =>
      isPartSettled(branch) ? [] : addAwait(source, branch, isPartSettled),
    );
  }
  const start = startOfExpression(source, expression);
  const from = { start: expression.getStart(file), end: expression.end };
  const insertion = (at: number, code: string): Insertion => ({ at, pieces: [{ code, from, exact: false }] });
  // After `await`, terser reads the slash of a regular expression as a division. Parentheses are clear to every parser.
  const added = /\w/.test(file.text.charAt(start - 1)) ? " await " : "await "; // `return[0].work()` has no space.
  const isUnambiguous =
    ts.isLeftHandSideExpression(expression) && !/[[/`]/.test(file.text.charAt(expression.getStart(file)));
  return isUnambiguous
    ? [insertion(start, added)]
    : [insertion(start, `${added}(`), insertion(expression.end, ")")];
}

/** Returns the branches of the expression, one of which is its value, or `undefined` if it has no branches. */
function branchesOf(source: Source, expression: TS.Expression): readonly TS.Expression[] | undefined {
  const { ts } = source;
  if (ts.isConditionalExpression(expression)) return [expression.whenTrue, expression.whenFalse];
  if (!ts.isParenthesizedExpression(expression) || isCast(source, expression)) return undefined;
  const isBranching = branchesOf(source, expression.expression) !== undefined;
  return isBranching ? [expression.expression] : undefined;
}

/** Inserts the pieces as the first statements of the body, after its directives. */
export function startOfBody({ ts, file }: Source, body: TS.Block, pieces: Piece[]): Insertion {
  const last = directives(ts, body).at(-1);
  if (last === undefined) return { at: body.getStart(file) + 1, pieces };
  const separator: Piece = { code: ";", from: { start: last.end, end: last.end }, exact: false };
  return { at: last.end, pieces: file.text.charAt(last.end - 1) === ";" ? pieces : [separator, ...pieces] };
}

/** Returns the start of the expression. In JavaScript, that includes a JSDoc comment before it, which may cast the expression. */
export function startOfExpression(source: Source, expression: TS.Expression): number {
  return jsDocBefore(source, expression)?.pos ?? expression.getStart(source.file);
}

/** Whether the expression is a cast: `/** @type {X} *\/ (value)`. */
function isCast(source: Source, expression: TS.Expression): boolean {
  return source.ts.isParenthesizedExpression(expression) && jsDocBefore(source, expression) !== undefined;
}

function jsDocBefore({ ts, file }: Source, { pos }: TS.Expression): TS.CommentRange | undefined {
  if (!isJavaScript(file)) return undefined;
  const comments = [
    ...(ts.getTrailingCommentRanges(file.text, pos) ?? []),
    ...(ts.getLeadingCommentRanges(file.text, pos) ?? []),
  ];
  return comments.find((comment) => file.text.startsWith("/**", comment.pos));
}

/** Returns the insertion that makes the function `async`, if it is not. The keyword goes after all other modifiers. */
export function asyncKeyword(source: Source, { fn, at }: Plan): Insertion[] {
  const { ts, file } = source;
  if (isAsync(ts, fn)) return [];
  const lastModifier = fn.modifiers?.at(-1);
  const start = lastModifier === undefined ? fn.getStart(file) : tokenAfter(source, lastModifier.end);
  const blank = /[\w$]/.test(file.text.charAt(start - 1)) ? " " : ""; // `export default(id) => ...` has no space.
  return [{ at: start, pieces: [{ code: `${blank}async `, from: at, exact: false }] }];
}

/**
 * Returns the start of the next token. The end of the modifier would be wrong, because a comment may follow it. A line break in that
 * comment would end up after `async`, where none is allowed.
 */
function tokenAfter({ ts, file }: Source, offset: number): number {
  const scanner = ts.createScanner(
    ts.ScriptTarget.Latest,
    true,
    file.languageVariant,
    file.text,
    undefined,
    offset,
  );
  scanner.scan();
  return scanner.getTokenStart();
}
