import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, configureAsValue, type HandedOn } from "../read/own-calls";
import type { Insertion } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";

/**
 * Gives the calls of `configure(...)` the word by which the runtime knows that the build was woven. A build
 * that ignored the plugin has no such word, and fails when the application starts, not at the first lost
 * update.
 */
export function handshakes(ts: Parser, file: TS.SourceFile, handedOn: HandedOn | undefined): Insertion[] {
  return callsOf(ts, file, "configure", handedOn).flatMap((call) => {
    const [only, another] = call.arguments;
    if (only === undefined || another !== undefined || ts.isSpreadElement(only)) return [];
    const from = spanOf(file, call);
    return [{ at: only.end, pieces: [{ code: ', "woven"', from, exact: false }] }];
  });
}

/** Where a call of `configure` may be that the word does not reach. */
export function unreached(ts: Parser, file: TS.SourceFile, handedOn: HandedOn | undefined): Problem[] {
  const spread = callsOf(ts, file, "configure", handedOn).flatMap(({ arguments: [first] }) =>
    first !== undefined && ts.isSpreadElement(first) ? [first] : [],
  );
  return [
    ...configureAsValue(ts, file, handedOn).map((value) => problem("configureAsValue", spanOf(file, value))),
    ...spread.map((argument) => problem("configureSpread", spanOf(file, argument))),
  ];
}

function spanOf(file: TS.SourceFile, node: TS.Node): Span {
  return { start: node.getStart(file), end: node.end };
}
