import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, passedAsValues, type FindReExports } from "../read/lockweave-calls";
import type { Insertion } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { stringLiteral } from "../text/string-literal";

/**
 * Adds an argument to the calls of `configure(...)` and `testLocks(...)` that tells the runtime that the build was woven. A build that
 * ignored the plugin has no such argument. It fails when the application or the test starts, and not at the first lost update.
 *
 * A call of `configure(...)` also gets its position, because a development server runs it again after its file was saved.
 *
 * @param pathOf see {@link WeaveOptions.pathOf}
 */
export function handshakes(
  ts: Parser,
  file: TS.SourceFile,
  findReExports: FindReExports | undefined,
  pathOf: ((fileName: string) => string | undefined) | undefined,
): Insertion[] {
  return CALLED.flatMap((called) =>
    callsOf(ts, file, called, findReExports).flatMap((call, index) => {
      const [only, another] = call.arguments;
      const isCompleted = another !== undefined || (only !== undefined && ts.isSpreadElement(only));
      if (isCompleted || (only === undefined && called === "configure")) return [];
      const from = spanOf(file, call);
      const path = called === "configure" ? pathOf?.(file.fileName) : undefined;
      const place = path === undefined ? "" : `, ${stringLiteral(callSite(path, index))}`;
      const handshake = `"woven"${place}`;
      const [at, code] =
        only === undefined ? [call.end - 1, `void 0, ${handshake}`] : [only.end, `, ${handshake}`];
      return [{ at, pieces: [{ code, from, exact: false }] }];
    }),
  );
}

/**
 * Returns the name of a call: `my-app/src/main.ts`, or `my-app/src/main.ts#2` for the second call. It has no line number, because edits of
 * the file change that.
 */
function callSite(path: string, index: number): string {
  return index === 0 ? path : `${path}#${index + 1}`;
}

const CALLED = ["configure", "testLocks"] as const;

/** Reports the places of calls that may not get the argument. */
export function callsWithoutHandshake(
  ts: Parser,
  file: TS.SourceFile,
  findReExports: FindReExports | undefined,
): Problem[] {
  const spread = CALLED.flatMap((called) =>
    callsOf(ts, file, called, findReExports).flatMap(({ arguments: [first] }) =>
      first !== undefined && ts.isSpreadElement(first)
        ? [problem("handshakeSpread", spanOf(file, first), called)]
        : [],
    ),
  );
  const values = passedAsValues(ts, file, findReExports).map(({ value, of }) =>
    problem("handshakeAsValue", spanOf(file, value), of),
  );
  return [...values, ...spread];
}

function spanOf(file: TS.SourceFile, node: TS.Node): Span {
  return { start: node.getStart(file), end: node.end };
}
