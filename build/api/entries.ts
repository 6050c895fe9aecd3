import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

// Reads the public names of the package from the declarations in `dist/`.

const REPOSITORY = join(__dirname, "../..");
const DIST = join(REPOSITORY, "dist");

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** A public name, with all of its declarations. A function has one for each overload. */
export interface Export {
  readonly name: string;
  readonly declarations: readonly ts.Declaration[];
}

/** A module of the package that applications can import. */
export interface Entry {
  /** The specifier, such as `lockweave/testing`. Several specifiers may load one module. */
  readonly specifiers: readonly string[];
  /** In the order of their declarations. `export =` is the only export of its module. */
  readonly exports: readonly Export[];
}

export class Entries {
  readonly #checker: ts.TypeChecker;
  readonly entries: readonly Entry[];

  constructor() {
    const specifiers = specifiersByFile();
    const program = ts.createProgram([...specifiers.keys()], {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
      types: ["node"],
      typeRoots: [join(REPOSITORY, "node_modules/@types")],
      skipLibCheck: true,
    });
    this.#checker = program.getTypeChecker();
    this.entries = [...specifiers].map(([file, names]) => ({
      specifiers: names,
      exports: this.#exportsOf(program.getSourceFile(file)),
    }));
  }

  #exportsOf(file: ts.SourceFile | undefined): Export[] {
    const module = file && this.#checker.getSymbolAtLocation(file);
    if (module === undefined) return []; // Only loaded for its effect.
    const whole = module.exports?.get(ts.InternalSymbolName.ExportEquals);
    const symbols = whole === undefined ? this.#checker.getExportsOfModule(module) : [whole];
    return symbols.map((symbol) => {
      const { name, declarations = [] } = this.#resolved(symbol);
      return { name: whole === undefined ? symbol.name : name, declarations };
    });
  }

  /**
   * Returns the types of this package that the declarations use, directly or indirectly, except those for which `isKnown` holds. Leaves out
   * classes. Applications cannot create objects of a class that is not exported.
   */
  typesUsedBy(
    declarations: readonly ts.Declaration[],
    isKnown: (declaration: ts.Declaration) => boolean,
  ): ts.Declaration[] {
    const used = new Set<ts.Declaration>();
    const visit = (node: ts.Node): void => {
      if (isPrivate(node)) return;
      if (ts.isTypeReferenceNode(node) || ts.isExpressionWithTypeArguments(node) || ts.isTypeQueryNode(node))
        for (const declaration of this.#declarationsOf(nameIn(node))) {
          if (used.has(declaration) || isKnown(declaration)) continue;
          used.add(declaration);
          visit(declaration);
        }
      ts.forEachChild(node, visit);
    };
    declarations.forEach(visit);
    return [...used];
  }

  #declarationsOf(name: ts.Node): ts.Declaration[] {
    const symbol = this.#checker.getSymbolAtLocation(name);
    const { declarations = [] } = symbol === undefined ? {} : this.#resolved(symbol);
    return declarations.filter(
      (declaration) =>
        !ts.isTypeParameterDeclaration(declaration) &&
        !ts.isSourceFile(declaration) &&
        !ts.isClassDeclaration(declaration) &&
        declaration.getSourceFile().fileName.startsWith(DIST.replaceAll("\\", "/")),
    );
  }

  #resolved(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }
}

/** Returns the specifiers of each file of declarations that package.json names. */
function specifiersByFile(): Map<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as Manifest;
  const specifiers = new Map<string, string[]>();
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === "string") continue;
    const file = join(REPOSITORY, target.types);
    specifiers.set(file, [...(specifiers.get(file) ?? []), subpath.replace(".", "lockweave")]);
  }
  return specifiers;
}

function nameIn(node: ts.TypeReferenceNode | ts.ExpressionWithTypeArguments | ts.TypeQueryNode): ts.Node {
  if (ts.isTypeReferenceNode(node)) return node.typeName;
  return ts.isTypeQueryNode(node) ? node.exprName : node.expression;
}

/** Whether the node is a member of a class that only the class itself can use. */
export function isPrivate(node: ts.Node): boolean {
  if (!ts.isClassElement(node)) return false;
  const isNamedPrivate = node.name !== undefined && ts.isPrivateIdentifier(node.name);
  return isNamedPrivate || (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private) !== 0;
}
