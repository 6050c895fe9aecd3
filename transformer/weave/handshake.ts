import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, passedOn, type HandedOn } from "../read/own-calls";
import type { Insertion } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";

/**
 * Tells the runtime that the build was woven, by a last argument in the calls of `configure(...)` and `testLocks(...)`. A build
 * that ignored the plugin has no such argument. It fails when the application or the test starts, and not at the first lost update.
 */
export function handshakes(ts: Parser, file: TS.SourceFile, handedOn: HandedOn | undefined): Insertion[] {
  return CALLED.flatMap((called) =>
    callsOf(ts, file, called, handedOn).flatMap((call) => {
      const [only, another] = call.arguments;
      const isCompleted = another !== undefined || (only !== undefined && ts.isSpreadElement(only));
      if (isCompleted || (only === undefined && called === "configure")) return [];
      const from = spanOf(file, call);
      const [at, code] = only === undefined ? [call.end - 1, 'void 0, "woven"'] : [only.end, ', "woven"'];
      return [{ at, pieces: [{ code, from, exact: false }] }];
    }),
  );
}

const CALLED = ["configure", "testLocks"] as const;

/** Where there may be a call that the argument does not reach. */
export function unreached(ts: Parser, file: TS.SourceFile, handedOn: HandedOn | undefined): Problem[] {
  const spread = CALLED.flatMap((called) =>
    callsOf(ts, file, called, handedOn).flatMap(({ arguments: [first] }) =>
      first !== undefined && ts.isSpreadElement(first)
        ? [problem("handshakeSpread", spanOf(file, first), called)]
        : [],
    ),
  );
  const values = passedOn(ts, file, handedOn).map(({ value, of }) =>
    problem("handshakeAsValue", spanOf(file, value), of),
  );
  return [...values, ...spread];
}

function spanOf(file: TS.SourceFile, node: TS.Node): Span {
  return { start: node.getStart(file), end: node.end };
}
