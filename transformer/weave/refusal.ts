import type * as TS from "typescript";
import type { Source } from "../parser/parser";
import type { Forbidden } from "../read/join-points";
import { type Insertion, type Piece, stringLiteral } from "../text/edits";
import type { Problem } from "../text/problems";
import { startOfBody, startOfExpression } from "./lock-template";

/** Makes a body that was not woven throw, so that it never runs unlocked, even if the compiler ignores the error. */
export function refuse(
  source: Source,
  { body, because }: Forbidden,
  namespace: string | undefined,
): Insertion[] {
  const { ts, file } = source;
  const reason = reasonOf(file, because, "The function refuses to run unlocked.");
  const refusal =
    namespace === undefined ? `(() => { throw new Error(${reason}); })()` : `${namespace}.refuse(${reason})`;
  const piece = (code: string): Piece => ({ code, from: because, exact: false });
  if (ts.isBlock(body)) return [startOfBody(source, body, [piece(` ${refusal};`)])];
  return [
    { at: startOfExpression(source, body), pieces: [piece(`(${refusal}, `)] },
    { at: body.end, pieces: [piece(")")] },
  ];
}

/** Makes a whole file throw, if its functions cannot be told apart. */
export function refuseFile(file: TS.SourceFile, because: Problem): Insertion[] {
  const [first] = file.statements;
  if (first === undefined) return [];
  const code = `throw new Error(${reasonOf(file, because, "")}); `;
  return [{ at: first.getStart(file), pieces: [{ code, from: because, exact: false }] }];
}

/**
 * Makes the file throw on load if a tag with a problem has no body that could refuse to run. The tag may have been meant for any function
 * of the file.
 */
export function refuseToLoad(file: TS.SourceFile, because: Problem): Insertion[] {
  const [first] = file.statements;
  if (first === undefined || file.isDeclarationFile) return [];
  const reason = reasonOf(file, because, "The file refuses to run unlocked.");
  // After a bare `throw`, compilers report the rest of the file as unreachable.
  const code = `(() => { throw new Error(${reason}); })(); `;
  return [{ at: first.getStart(file), pieces: [{ code, from: because, exact: false }] }];
}

function reasonOf(file: TS.SourceFile, { start, code, message }: Problem, consequence: string): string {
  const { line } = file.getLineAndCharacterOfPosition(start);
  const fileName = file.fileName.replace(/^.*[\\/]/, "");
  return stringLiteral(`${fileName}:${line + 1}: ${code}: ${message} ${consequence}`.trimEnd());
}
