import type * as TS from "typescript";
import type { Forbidden } from "../read/join-points";
import type { Insertion, Piece } from "../text/edits";
import { stringLiteral } from "../text/string-literal";
import { startOfBody } from "./start-of-body";

/** A body that was not woven must not run unlocked, whatever the compiler does with the error. */
export function refuse(
  ts: typeof TS,
  file: TS.SourceFile,
  { body, because }: Forbidden,
  namespace: string | undefined,
): Insertion[] {
  const { line } = file.getLineAndCharacterOfPosition(because.start);
  const fileName = file.fileName.replace(/^.*[\\/]/, "");
  const reason = stringLiteral(
    `${fileName}:${line + 1}: ${because.code}: ${because.message} The function refuses to run unlocked.`,
  );
  const refusal =
    namespace === undefined ? `(() => { throw new Error(${reason}); })()` : `${namespace}.refuse(${reason})`;
  const piece = (code: string): Piece => ({ code, from: because, exact: false });
  if (ts.isBlock(body)) return [startOfBody(ts, file, body, [piece(` ${refusal};`)])];
  return [
    { at: body.getStart(file), pieces: [piece(`(${refusal}, `)] },
    { at: body.end, pieces: [piece(")")] },
  ];
}
