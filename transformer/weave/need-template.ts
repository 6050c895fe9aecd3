import type { Source } from "../parser/parser";
import type { NeedPlan } from "../read/need";
import type { Insertion, Piece } from "../text/edits";
import { glue, keyPart, mapped, startOfBody, startOfExpression, wholeKey } from "./lock-template";

/**
 * Inserts the checks of the locks that a function needs. They are the first statements of its body:
 * `lockweave.needs({ site: "Ledger.post", businessFlag: "order" }, id);`. Before an expression, a comma follows them:
 * `(id) => (lockweave.needs({ ... }, id), entries.get(id))`.
 *
 * @param needs the tags of the function
 */
export function weaveNeeds(source: Source, needs: readonly NeedPlan[], namespace: string): Insertion[] {
  const [first] = needs;
  if (first === undefined) return [];
  const { body } = first.fn;
  if (source.ts.isBlock(body)) return [startOfBody(source, body, checksOf(needs, namespace))];
  const calls = needs.flatMap((need) => [...callOf(need, namespace), glue(need, ", ")]);
  return [
    { at: startOfExpression(source, body), pieces: [glue(first, "("), ...calls] },
    { at: body.end, pieces: [glue(first, ")")] },
  ];
}

/** Returns the checks as statements. */
export function checksOf(needs: readonly NeedPlan[], namespace: string): Piece[] {
  return needs.flatMap((need) => [glue(need, " "), ...callOf(need, namespace), glue(need, ";")]);
}

function callOf(need: NeedPlan, namespace: string): readonly Piece[] {
  return [
    mapped(need, `${namespace}.needs`),
    glue(need, `({ ${need.options.join(", ")}`),
    ...wholeKey(need, namespace),
    glue(need, " }"),
    ...need.key.flatMap((part) => [glue(need, ", "), ...keyPart(need, part, namespace)]),
    glue(need, ")"),
  ];
}
