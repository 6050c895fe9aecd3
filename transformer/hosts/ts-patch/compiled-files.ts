import { join, relative, resolve } from "node:path";
import type * as TS from "typescript";
import type { CompiledFiles } from "../../resolve/compiled-files";
import { ownSources, resolvedFile, type ImportingFile } from "./imports";

type ProgramWithRoot = TS.Program & { getCommonSourceDirectory(): string };

/** Returns the program with functions that resolve its imports, if it has `paths`. */
export function compiledFiles(program: TS.Program): CompiledFiles | undefined {
  const { outDir, paths } = program.getCompilerOptions();
  if (paths === undefined) return undefined;
  const { getCommonSourceDirectory } = program as ProgramWithRoot;
  return {
    files: new Map(ownSources(program).map((file) => [file.fileName, file])),
    specifiersIn: (file: ImportingFile) => file.imports ?? [],
    resolve: (specifier, file) => resolvedFile(program, specifier, file),
    outputOf: (fileName) =>
      resolve(outDir === undefined ? fileName : join(outDir, relative(getCommonSourceDirectory(), fileName))),
  };
}
