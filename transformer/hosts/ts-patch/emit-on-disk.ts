import type * as TS from "typescript";
import { withoutRuntime } from "./declarations";
import { toDisk } from "../diagnostics/to-disk";
import type { TextOnDisk } from "../../text/source-map";
import { correctSourceMaps } from "./source-maps";
import { findWovenIn, isOwnImport, type WovenFile, type WovenFiles } from "./woven-files";

/** Makes the output of woven files refer to the files on disk. */
export function emitOnDisk(
  ts: typeof TS,
  program: TS.Program,
  host: TS.CompilerHost,
  files: WovenFiles,
): void {
  const fileOf = findWovenIn(files);
  const sourceOf = (file: TS.SourceFile): TextOnDisk | undefined => {
    const found = fileOf(file);
    return found && { text: found.onDisk.text, positions: found.woven.positions };
  };
  const writeByHost: TS.WriteFileCallback = (...file) => host.writeFile(...file);
  const { emit } = program;
  program.emit = (
    target,
    writeFile = writeByHost,
    cancellationToken,
    onlyDeclarations,
    transformers,
    ...rest
  ) => {
    const result = emit(
      target,
      (fileName, text, bom, onError, sources = [], data) =>
        writeFile(
          fileName,
          correctSourceMaps(fileName, text, sources, sourceOf),
          bom,
          onError,
          sources,
          data,
        ),
      cancellationToken,
      onlyDeclarations,
      {
        ...transformers,
        before: [() => (file) => moveImportUp(ts, file, fileOf(file)), ...(transformers?.before ?? [])],
        afterDeclarations: [
          (context) => (declarations) => {
            if (ts.isBundle(declarations)) return declarations;
            const compiled = ts.getOriginalNode(declarations, ts.isSourceFile);
            const woven = compiled && fileOf(compiled);
            if (woven === undefined) return declarations;
            keepFirstComment(ts, declarations, compiled, woven);
            return withoutRuntime(ts, declarations, woven, context);
          },
          ...(transformers?.afterDeclarations ?? []),
        ],
      },
      ...rest,
    );
    return { ...result, diagnostics: result.diagnostics.map((diagnostic) => toDisk(diagnostic, fileOf)) };
  };
}

/**
 * Moves the runtime's import to the top. In a file without imports, the weave puts it at the end of the text: see {@link importRuntime}.
 */
function moveImportUp(ts: typeof TS, file: TS.SourceFile, woven: WovenFile | undefined): TS.SourceFile {
  const last = file.statements.at(-1);
  if (last === undefined || woven === undefined || !isOwnImport(ts, last, woven)) return file;
  const others = file.statements.slice(0, -1);
  const directives = others.findIndex(
    (statement) => !ts.isExpressionStatement(statement) || !ts.isStringLiteral(statement.expression),
  );
  const at = directives === -1 ? others.length : directives;
  const moved = ts.factory.createNodeArray([...others.slice(0, at), last, ...others.slice(at)]);
  return ts.factory.updateSourceFile(file, ts.setTextRange(moved, file.statements));
}

/** Restores the comment above the first import. The weave inserted the runtime's import between the two. */
function keepFirstComment(
  ts: typeof TS,
  declarations: TS.SourceFile,
  { statements }: TS.SourceFile,
  woven: WovenFile,
): void {
  const index = statements.findIndex((statement) => isOwnImport(ts, statement, woven));
  const runtimeImport = statements[index];
  const firstImport = statements[index + 1];
  const declared = declarations.statements.find((statement) => ts.getOriginalNode(statement) === firstImport);
  if (runtimeImport !== undefined && declared !== undefined) {
    ts.setCommentRange(declared, { pos: runtimeImport.pos, end: declared.end });
  }
}
