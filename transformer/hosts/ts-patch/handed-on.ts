import type * as TS from "typescript";
import { mayImportOurs, ownExportsOf, type HandedOn, type OwnExports } from "../../read/own-calls";

/** TypeScript's own, which its declarations leave out. */
interface ProgramInternals {
  getResolvedModuleFromModuleSpecifier(
    specifier: TS.StringLiteralLike,
    file: TS.SourceFile,
  ): { readonly resolvedModule?: { readonly resolvedFileName: string } } | undefined;
}

/**
 * What other modules of the program hand on of ours to a file: barrels, and barrels of barrels. Most programs have
 * none, and then nothing is looked up.
 */
export function handedOnIn(
  ts: typeof TS,
  program: TS.Program,
): (file: TS.SourceFile) => HandedOn | undefined {
  const own = program.getSourceFiles().filter((file) => !file.isDeclarationFile);
  const isBarrel = (file: TS.SourceFile): boolean =>
    mayImportOurs(file.text) && ownExportsOf(ts, file, () => undefined).size > 0;
  if (!own.some(isBarrel)) return () => undefined;
  const from = (importer: TS.SourceFile, seen: readonly TS.SourceFile[]): HandedOn => {
    const specifiers = (importer as { readonly imports?: readonly TS.StringLiteralLike[] }).imports ?? [];
    return (text): OwnExports | undefined => {
      const specifier = specifiers.find((one) => one.text === text);
      const resolved =
        specifier &&
        (program as TS.Program & ProgramInternals).getResolvedModuleFromModuleSpecifier(specifier, importer);
      const target = program.getSourceFile(resolved?.resolvedModule?.resolvedFileName ?? "");
      if (target === undefined || target.isDeclarationFile || seen.includes(target)) return undefined;
      const exported = ownExportsOf(ts, target, from(target, [...seen, target]));
      return exported.size === 0 ? undefined : exported;
    };
  };
  return (file) => from(file, [file]);
}
