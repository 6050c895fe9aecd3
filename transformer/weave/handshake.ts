import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, passedOn, type HandedOn } from "../read/lockweave-calls";
import type { Insertion } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { stringLiteral } from "../text/string-literal";

/**
 * Tells the runtime that the build was woven, by a further argument in the calls of `configure(...)` and `testLocks(...)`. A build
 * that ignored the plugin has no such argument. It fails when the application or the test starts, and not at the first lost update.
 *
 * A call of `configure(...)` also says where it is: a development server runs it again when its file was saved.
 *
 * @param pathOf see {@link WeaveOptions.pathOf}
 */
export function handshakes(
  ts: Parser,
  file: TS.SourceFile,
  handedOn: HandedOn | undefined,
  pathOf: ((fileName: string) => string | undefined) | undefined,
): Insertion[] {
  return CALLED.flatMap((called) =>
    callsOf(ts, file, called, handedOn).flatMap((call, index) => {
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

/** Not by its line, which edits of the file change: `my-app/src/main.ts`, and `my-app/src/main.ts#2` of the second call. */
function callSite(path: string, index: number): string {
  return index === 0 ? path : `${path}#${index + 1}`;
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
