import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { ExtractedBody } from "../read/extracted-body";
import { isJavaScript } from "../read/file-kind";
import type { KeyPart } from "../read/key";
import { freshName, identifiersIn } from "../read/names";
import type { Plan } from "../read/plan";
import { namesIn } from "../read/scopes";
import type { Insertion, Piece } from "../text/edits";
import { stringLiteral } from "../text/string-literal";
import { awaited, awaitedReturns } from "./awaits";
import { onOneLine } from "./one-line";
import { startOfBody } from "./start-of-body";
import { startOfExpression } from "./start-of-expression";

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
 *       while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
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
 * With `when="order.amount > 100"`, there may be no lock, and every step allows for that:
 * `const lock = lockweave.when(order.amount > 100) ? lockweave.open({ ... }, orderNo) : lockweave.unlocked();`.
 *
 * An async generator acquires the lock at the first `next()`, and releases it at its end, or at `return()` or `throw()`. It awaits the value
 * that it returns, but not if esbuild has compiled it for engines without async generators.
 */
export function weaveFunction(ts: Parser, file: TS.SourceFile, plan: Plan, names: Names): Insertion[] {
  const { body } = plan.fn;
  const { extracted } = plan;
  const narrowed = copiesOf(ts, file, plan, plan.narrowed, names);
  const before = [
    ...head(plan, names, narrowed),
    ...(extracted === undefined ? [] : headOfBody(ts, file, plan, extracted, names)),
  ];
  const closeBody = plan.reentrant ? "); " : ")(); ";
  const variables = narrowed.flatMap(({ declared, copy }) =>
    [glue(plan, " let ")].concat(declared, glue(plan, ` = ${copy};`)),
  );
  const after = glue(plan, `${extracted === undefined ? "" : closeBody}${tail(names)}`);
  if (ts.isBlock(body)) {
    const [open, close] = extracted === undefined ? ["", ""] : [" {", "}"];
    return [
      startOfBody(ts, file, body, [...before, glue(plan, open), ...variables]),
      ...(extracted === undefined ? awaitedReturns(ts, file, plan.fn) : []),
      { at: body.end - 1, pieces: [glue(plan, close), after] },
    ];
  }
  const value = { start: body.getStart(file), end: body.end };
  // These pieces belong to the value, so that errors in what it returns are reported there.
  const ofValue = (code: string): Piece => ({ code, from: value, exact: false });
  const start = startOfExpression(ts, file, body);
  // After a comment with a line break, a plain `return` would return nothing.
  const [returns, ends] = start === value.start ? ["return ", "; "] : ["return (", "); "];
  return [
    // The code goes directly after the arrow, so that a comment before the value stays with the value.
    { at: body.pos, pieces: [glue(plan, " {"), ...before, ...variables] },
    ...(extracted === undefined ? [{ at: start, pieces: [ofValue(returns)] }] : []),
    ...(extracted === undefined ? awaited(ts, file, plan.fn, body) : []),
    {
      at: body.end,
      pieces: [...(extracted === undefined ? [ofValue(ends)] : []), after, glue(plan, "}")],
    },
  ];
}

/** Returns the code before the body: `const lock = open(...); while (!acquire) retryCheck; try { assertHeld;`. */
function head(plan: Plan, { namespace, lock }: Names, narrowed: readonly Copy[]): Piece[] {
  const { action, returns, failure, at } = plan.onFailure;
  const retryCheck = glue(plan, `await ${namespace}.retryCheck(${lock}`);
  const retry: Piece[] =
    action === "skip"
      ? [glue(plan, "if (!("), retryCheck, glue(plan, "))) "), { code: returns, from: at, exact: false }]
      : [retryCheck, ...(failure === undefined ? [] : [glue(plan, ", "), failure]), glue(plan, ");")];
  const saved = narrowed.map(({ parameter, copy }) => `${copy} = ${parameter}, `).join("");
  return [
    glue(plan, ` const ${saved}${lock} = `),
    ...(plan.when === undefined ? [] : [glue(plan, `${namespace}.when(`), plan.when, glue(plan, ") ? ")]),
    glue(plan, `${namespace}.open({ ${plan.options.join(", ")}`),
    ...wholeKey(plan, namespace),
    glue(plan, " }"),
    ...plan.key.flatMap((part) => [glue(plan, ", "), ...keyPart(plan, part, namespace)]),
    glue(plan, plan.when === undefined ? ")" : `) : ${namespace}.unlocked()`),
    glue(plan, `; while (!(await ${namespace}.acquire(${lock}))) `),
    ...retry,
    // Other code may have blocked the process since the lock was acquired. `runReentrant` has its own check.
    glue(plan, plan.reentrant ? " try {" : ` try { ${namespace}.assertHeld(${lock});`),
  ];
}

/** Returns the entry for a whole key: ``, key: lockweave.wholeKey`mutex:${orderNo}` ``. */
function wholeKey(plan: Plan, namespace: string): readonly Piece[] {
  if (plan.wholeKey === undefined) return [];
  return [glue(plan, `, key: ${namespace}.wholeKey\``), ...plan.wholeKey.pieces, glue(plan, "`")];
}

function keyPart(plan: Plan, { pieces, jsonField }: KeyPart, namespace: string): readonly Piece[] {
  if (jsonField === undefined) return pieces;
  const path = stringLiteral(jsonField.text);
  const field: Piece = { code: `, ${path}, ${stringLiteral(plan.site)})`, from: jsonField, exact: false };
  return [glue(plan, `${namespace}.jsonField(`), ...pieces, field];
}

/**
 * Returns the code before the body's own brace. Given `async pay(orderNo, limit) { limit ??= 3; BODY }`, that is
 *
 *     const limit_1 = limit; return await (async (limit = limit_1): Promise<void> => {
 */
function headOfBody(
  ts: Parser,
  file: TS.SourceFile,
  plan: Plan,
  { isAsync, type, isVoid, assigned, isVariadic }: ExtractedBody,
  names: Names,
): readonly Piece[] {
  const { namespace, lock } = names;
  // An error in the function's signature occurs in the inner function, too. It is reported at the outer one's type, name, or modifier.
  const { name, modifiers } = plan.fn;
  const own = type ?? name ?? modifiers?.[0];
  const from = own === undefined ? plan.at : { start: own.getStart(file), end: own.end };
  const copies = copiesOf(ts, file, plan, assigned, names);
  const saved = copies.map(({ parameter, copy }) => ` const ${copy} = ${parameter};`).join("");
  const ofOwn = (code: string): Piece => ({ code, from, exact: false });
  const parameters = copies.flatMap(({ declared, copy }, index) =>
    (index === 0 ? [] : [ofOwn(", ")]).concat(declared, ofOwn(` = ${copy}`)),
  );
  const returned = type && typePiece(ts, file, type);
  const isDocumented = isJavaScript(file); // JavaScript has the type in a comment.
  const documented = returned && isDocumented ? [ofOwn("/** @returns {"), returned, ofOwn("} */ ")] : [];
  const returns = `${isVariadic ? "void arguments; " : ""}${isVoid ? "await" : "return await"}`;
  return [
    glue(plan, `${saved} ${returns} ${plan.reentrant ? `${namespace}.runReentrant(${lock}, ` : "("}`),
    ...documented,
    ofOwn(isAsync ? "async (" : "("),
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
function typePiece(ts: Parser, file: TS.SourceFile, type: TS.TypeNode): Piece {
  const code = onOneLine(ts, file, type);
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
  ts: Parser,
  file: TS.SourceFile,
  { fn, at, typeOf }: Plan,
  parameters: readonly string[],
  { namespace, lock, words }: Names,
): readonly Copy[] {
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
    const declared = declaration(ofName, parameter, type && typePiece(ts, file, type), isJavaScript(file));
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

function tail({ namespace, lock }: Names): string {
  const rethrow = `catch (error) { throw ${namespace}.fail(${lock}, error); }`;
  return `} ${rethrow} finally { await ${namespace}.release(${lock}); } `;
}

function glue({ at }: Plan, code: string): Piece {
  return { code, from: at, exact: false };
}
