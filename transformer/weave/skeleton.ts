import type * as TS from "typescript";
import type { KeyPart } from "../read/key";
import type { Plan } from "../read/plan";
import type { Insertion, Piece } from "../text/edits";
import { stringLiteral } from "../text/string-literal";
import { awaited, awaitedReturns } from "./awaits";
import { startOfBody } from "./start-of-body";

/** What the woven code calls the runtime and the lock. */
export interface Names {
  readonly namespace: string;
  readonly lock: string;
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
 *         BODY, with `return await`
 *       } catch (error) {
 *         throw lockweave.fail(lock, error);
 *       } finally {
 *         await lockweave.release(lock);
 *       }
 *     }
 *
 * An async generator takes the lock at the first `next()`, and gives it back at its end, `return()` or `throw()`.
 */
export function weaveFunction(ts: typeof TS, file: TS.SourceFile, plan: Plan, names: Names): Insertion[] {
  const { body, asteriskToken } = plan.fn;
  const { isBodyApart } = plan;
  const before = [...head(plan, names), ...(isBodyApart ? headOfBody(ts, file, plan, names) : [])];
  const closeBody = plan.reentrant ? "); " : ")(); ";
  const after = glue(plan, `${isBodyApart ? closeBody : ""}${tail(names)}`);
  if (ts.isBlock(body)) {
    const keepsReturns = isBodyApart || asteriskToken !== undefined; // A generator awaits by itself.
    const [open, close] = isBodyApart ? [" {", "}"] : ["", ""];
    return [
      startOfBody(ts, file, body, [...before, glue(plan, open)]),
      ...(keepsReturns ? [] : awaitedReturns(ts, file, body)),
      { at: body.end - 1, pieces: [glue(plan, close), after] },
    ];
  }
  return [
    // Right behind the arrow: a comment before the value stays with it.
    { at: body.pos, pieces: [glue(plan, " {"), ...before] },
    ...(isBodyApart ? [] : [{ at: body.getStart(file), pieces: [glue(plan, "return ")] }]),
    ...(isBodyApart ? [] : awaited(ts, file, body)),
    { at: body.end, pieces: [...(isBodyApart ? [] : [glue(plan, "; ")]), after, glue(plan, "}")] },
  ];
}

/** `const lock = open(...); while (!acquire) retryCheck; try {` */
function head(plan: Plan, { namespace, lock }: Names): Piece[] {
  const { action, failure, at } = plan.onFailure;
  const retryCheck = glue(plan, `await ${namespace}.retryCheck(${lock}`);
  const retry: Piece[] =
    action === "skip"
      ? [
          glue(plan, "if (!("),
          retryCheck,
          glue(plan, "))) "),
          { code: "return undefined;", from: at, exact: false },
        ]
      : [retryCheck, ...(failure === undefined ? [] : [glue(plan, ", "), failure]), glue(plan, ");")];
  return [
    glue(plan, ` const ${lock} = ${namespace}.open({ ${plan.options.join(", ")} }`),
    ...plan.key.flatMap((part) => [glue(plan, ", "), ...keyPart(plan, part, namespace)]),
    glue(plan, `); while (!(await ${namespace}.acquire(${lock}))) `),
    ...retry,
    glue(plan, " try {"),
  ];
}

function keyPart(plan: Plan, { pieces, jsonField }: KeyPart, namespace: string): readonly Piece[] {
  if (jsonField === undefined) return pieces;
  const field: Piece = { code: `, ${stringLiteral(jsonField.text)})`, from: jsonField, exact: false };
  return [glue(plan, `${namespace}.jsonField(`), ...pieces, field];
}

/**
 * The body becomes a function of its own: that of a reentrant lock, since it needs an async context of its own,
 * and one that returns promises under `try`, since they are to be awaited outside of it.
 */
function headOfBody(
  ts: typeof TS,
  file: TS.SourceFile,
  plan: Plan,
  { namespace, lock }: Names,
): readonly Piece[] {
  const { type, name, modifiers } = plan.fn;
  const returnType = type === undefined ? "" : `: ${onOneLine(ts, file, type)}`;
  // To blame for what is wrong with the function: that is also wrong with the one inside.
  const own = type ?? name ?? modifiers?.[0];
  const from = own === undefined ? plan.at : { start: own.getStart(file), end: own.end };
  return [
    glue(plan, ` return await ${plan.reentrant ? `${namespace}.runReentrant(${lock}, ` : "("}`),
    { code: `async ()${returnType}`, from, exact: false },
    glue(plan, " =>"),
  ];
}

/** Where line breaks separate members, or end comments, the text alone will not do. */
function onOneLine(ts: typeof TS, file: TS.SourceFile, type: TS.TypeNode): string {
  const text = type.getText(file);
  if (!/[\n\r\u2028\u2029]/.test(text)) return text;
  const printer = ts.createPrinter({ removeComments: true });
  return printer.printNode(ts.EmitHint.Unspecified, type, file).replaceAll(/\s*[\n\r]\s*/g, " ");
}

function tail({ namespace, lock }: Names): string {
  const rethrow = `catch (error) { throw ${namespace}.fail(${lock}, error); }`;
  return `} ${rethrow} finally { await ${namespace}.release(${lock}); } `;
}

function glue({ at }: Plan, code: string): Piece {
  return { code, from: at, exact: false };
}
