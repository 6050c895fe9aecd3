import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, type HandedOn } from "../read/own-calls";
import type { Insertion } from "../text/edits";

/**
 * Gives the calls of `configure(...)` the word by which the runtime knows that the build was woven. A build
 * that ignored the plugin has no such word, and fails when the application starts, not at the first lost
 * update.
 */
export function handshakes(ts: Parser, file: TS.SourceFile, handedOn: HandedOn | undefined): Insertion[] {
  return callsOf(ts, file, "configure", file, { handedOn }).flatMap((call) => {
    const [only, another] = call.arguments;
    if (only === undefined || another !== undefined || ts.isSpreadElement(only)) return [];
    const from = { start: call.getStart(file), end: call.end };
    return [{ at: only.end, pieces: [{ code: ', "woven"', from, exact: false }] }];
  });
}
