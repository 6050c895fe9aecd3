import type * as TS from "typescript";

// Finds the names that a file declares or imports, so that a tag in it can use them.

/** Returns the classes that `onFailure` can throw. */
export function errorClassesIn(ts: typeof TS, checker: TS.TypeChecker, at: TS.Node): TS.Symbol[] {
  return inScope(ts, checker, at, ts.SymbolFlags.Value).filter((symbol) => {
    const { flags, declarations = [] } = resolved(ts, checker, symbol);
    const isAbstract = declarations.some(
      (one) =>
        ts.canHaveModifiers(one) &&
        ts.getModifiers(one)?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword),
    );
    if ((flags & ts.SymbolFlags.Class) === 0 || isAbstract) return false;
    return isError(checker.getDeclaredTypeOfSymbol(resolved(ts, checker, symbol)));
  });
}

/** Returns the types that `keyClass` can name. */
export function typesIn(ts: typeof TS, checker: TS.TypeChecker, at: TS.Node): TS.Symbol[] {
  const { Class, Interface, TypeAlias } = ts.SymbolFlags;
  return inScope(ts, checker, at, ts.SymbolFlags.Type).filter(
    (symbol) => (resolved(ts, checker, symbol).flags & (Class | Interface | TypeAlias)) !== 0,
  );
}

export function inScope(
  ts: typeof TS,
  checker: TS.TypeChecker,
  at: TS.Node,
  meaning: TS.SymbolFlags,
): TS.Symbol[] {
  const file = at.getSourceFile();
  return checker
    .getSymbolsInScope(at, meaning | ts.SymbolFlags.Alias)
    .filter(({ declarations = [] }) => declarations.some((one) => one.getSourceFile() === file));
}

/** Resolves an import alias or a local symbol of an export to the symbol that it stands for. */
export function resolved(ts: typeof TS, checker: TS.TypeChecker, symbol: TS.Symbol): TS.Symbol {
  return (symbol.flags & ts.SymbolFlags.Alias) === 0
    ? checker.getExportSymbolOfSymbol(symbol)
    : checker.getAliasedSymbol(symbol);
}

function isError(type: TS.Type): boolean {
  if (type.symbol?.name === "Error") return true;
  return (type.getBaseTypes() ?? []).some((base) => isError(base));
}
