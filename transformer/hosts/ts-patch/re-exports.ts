import type * as TS from "typescript";
import { ownExportsOf } from "../../read/lockweave-calls";
import type { FindReExports, OwnExports } from "../../read/meanings";
import { mayImportOurs } from "../../read/spelling";

/** An internal method of TypeScript that its declarations omit. */
interface ProgramInternals {
  getResolvedModuleFromModuleSpecifier(
    specifier: TS.StringLiteralLike,
    file: TS.SourceFile,
  ): { readonly resolvedModule?: { readonly resolvedFileName: string } } | undefined;
}

/** The modules of the program that a file imports, by specifier. */
type Imports = ReadonlyMap<string, TS.SourceFile>;

/**
 * Finds what other modules of the program re-export from Lockweave to a file, including barrels of barrels. Most programs have no barrels,
 * and then nothing is looked up.
 */
export function reExportsIn(
  ts: typeof TS,
  program: TS.Program,
): (file: TS.SourceFile) => FindReExports | undefined {
  const own = program.getSourceFiles().filter((file) => !file.isDeclarationFile);
  const isBarrel = (file: TS.SourceFile): boolean =>
    mayImportOurs(file.text) && ownExportsOf({ ts, file }, () => undefined).size > 0;
  const barrels = own.filter(isBarrel);
  if (barrels.length === 0) return () => undefined;
  const imports = new Map(own.map((file) => [file, importsOf(program, file)]));
  const exported = exportsOfOurs(ts, barrels, imports);
  return (file) => {
    const findReExports = reExportsBy(imports.get(file), exported);
    return [...(imports.get(file)?.keys() ?? [])].some(findReExports) ? findReExports : undefined;
  };
}

/** Computes the re-exports, starting from the barrels. When the exports of a module grow, its importers are processed again. */
function exportsOfOurs(
  ts: typeof TS,
  barrels: readonly TS.SourceFile[],
  imports: ReadonlyMap<TS.SourceFile, Imports>,
): ReadonlyMap<TS.SourceFile, OwnExports> {
  const importers = new Map<TS.SourceFile, TS.SourceFile[]>();
  for (const [file, targets] of imports) {
    for (const target of targets.values()) {
      const known = importers.get(target);
      if (known === undefined) importers.set(target, [file]);
      else known.push(file);
    }
  }
  const exported = new Map<TS.SourceFile, OwnExports>();
  const queue = new Set(barrels);
  for (const file of queue) {
    queue.delete(file);
    const found = ownExportsOf({ ts, file }, reExportsBy(imports.get(file), exported));
    if (found.size === (exported.get(file)?.size ?? 0)) continue;
    exported.set(file, found);
    for (const importer of importers.get(file) ?? []) queue.add(importer);
  }
  return exported;
}

function reExportsBy(
  imports: Imports | undefined,
  exported: ReadonlyMap<TS.SourceFile, OwnExports>,
): FindReExports {
  return (specifier) => {
    const target = imports?.get(specifier);
    return target && exported.get(target);
  };
}

function importsOf(program: TS.Program, importer: TS.SourceFile): Imports {
  const { imports: specifiers = [] } = importer as { readonly imports?: readonly TS.StringLiteralLike[] };
  const internals = program as TS.Program & ProgramInternals;
  const targets = specifiers.flatMap((specifier) => {
    const resolved = internals.getResolvedModuleFromModuleSpecifier(specifier, importer)?.resolvedModule;
    const target = resolved && program.getSourceFile(resolved.resolvedFileName);
    return target === undefined || target.isDeclarationFile ? [] : [[specifier.text, target] as const];
  });
  return new Map(targets);
}
