import type * as TS from "typescript";
import { Implementations } from "./implementations";
import { bare, functionIn, isFunctionWithBody, type Callable } from "./syntax";

/** The reason why the target of a call is unknown. */
export type Unknown = "dynamic" | "callback";

export interface Callees {
  /** The functions of the program that the call may run. */
  readonly functions: readonly Callable[];
  /** Whether the call may also run code of the program that is not in `functions`. */
  readonly isUnknown: boolean;
}

const NOTHING: Callees = { functions: [], isUnknown: false };
const ANYTHING: Callees = { functions: [], isUnknown: true };

/** Finds the functions of the program to which a called expression may refer. */
export class CalleeFinder {
  readonly implementations: Implementations;
  readonly #ts: typeof TS;
  readonly #program: TS.Program;
  readonly #checker: TS.TypeChecker;

  constructor(ts: typeof TS, program: TS.Program) {
    this.#ts = ts;
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.implementations = new Implementations(ts, program);
  }

  /** Returns what a call of the expression runs. */
  of(called: TS.Expression): Callees {
    const ts = this.#ts;
    const expression = bare(ts, called);
    if (expression.kind === ts.SyntaxKind.SuperKeyword || expression.kind === ts.SyntaxKind.ImportKeyword) {
      return NOTHING;
    }
    if (isFunctionWithBody(ts, expression)) return { functions: [expression], isUnknown: false };
    if (ts.isPropertyAccessExpression(expression) && CALLERS.has(expression.name.text)) {
      const itself = this.#checker.getSymbolAtLocation(expression.name);
      if (itself?.declarations?.every((one) => this.#isLibrary(one)) === true)
        return this.of(expression.expression);
    }
    if (ts.isConditionalExpression(expression)) {
      return either([this.of(expression.whenTrue), this.of(expression.whenFalse)]);
    }
    if (ts.isBinaryExpression(expression))
      return either([this.of(expression.left), this.of(expression.right)]);
    const symbol = this.symbolOf(expression);
    if (symbol === undefined) return ANYTHING;
    if (this.#isProvidedByTheLanguage(expression)) return NOTHING;
    const isOfSuper =
      ts.isPropertyAccessExpression(expression) && expression.expression.kind === ts.SyntaxKind.SuperKeyword;
    return either((symbol.declarations ?? []).map((one) => this.#declared(one, isOfSuper)));
  }

  /**
   * Returns what an argument refers to: a function that is written there, or a named one. Returns `undefined` if the argument is not a
   * function.
   */
  ofArgument(argument: TS.Expression): Callees | undefined {
    const ts = this.#ts;
    const expression = bare(ts, argument);
    if (isFunctionWithBody(ts, expression)) return this.of(expression);
    if (ts.isCallExpression(expression) && ts.isPropertyAccessExpression(expression.expression)) {
      const { name, expression: bound } = expression.expression;
      return name.text === "bind" ? this.ofArgument(bound) : undefined;
    }
    if (!ts.isIdentifier(expression) && !ts.isPropertyAccessExpression(expression)) return undefined;
    if (this.#checker.getTypeAtLocation(expression).getCallSignatures().length === 0) return undefined;
    return this.of(expression);
  }

  /** Whether the call is to a built-in function that runs its callbacks. */
  runsCallbacks(called: TS.Expression): boolean {
    const symbol = this.symbolOf(bare(this.#ts, called));
    return symbol !== undefined && RUN_CALLBACKS.has(symbol.name) && this.isOfLanguage(called);
  }

  isOfLanguage(called: TS.Expression): boolean {
    const declarations = this.symbolOf(bare(this.#ts, called))?.declarations ?? [];
    return (
      declarations.length > 0 &&
      declarations.every((one) => this.#program.isSourceFileDefaultLibrary(one.getSourceFile()))
    );
  }

  /** Whether the expression is a function that the language provides, such as `resolve`. */
  #isProvidedByTheLanguage(expression: TS.Expression): boolean {
    const signatures = this.#checker.getTypeAtLocation(expression).getCallSignatures();
    return (
      signatures.length > 0 &&
      signatures.every(({ declaration }) => {
        const file = declaration?.getSourceFile();
        return file !== undefined && this.#program.isSourceFileDefaultLibrary(file);
      })
    );
  }

  symbolOf(expression: TS.Expression): TS.Symbol | undefined {
    const ts = this.#ts;
    const name = ts.isPropertyAccessExpression(expression)
      ? expression.name
      : ts.isElementAccessExpression(expression)
        ? expression.argumentExpression
        : expression;
    const symbol = ts.isShorthandPropertyAssignment(name.parent)
      ? this.#checker.getShorthandAssignmentValueSymbol(name.parent)
      : this.#checker.getSymbolAtLocation(name);
    if (symbol === undefined) return undefined;
    return (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : this.#checker.getAliasedSymbol(symbol);
  }

  #declared(declaration: TS.Declaration, isOfSuper: boolean): Callees {
    const ts = this.#ts;
    if (this.#isLibrary(declaration)) return NOTHING;
    if (ts.isFunctionDeclaration(declaration)) return known(ts, [declaration]);
    if (ts.isMethodDeclaration(declaration)) {
      const overriding = isOfSuper ? [] : this.implementations.of(declaration);
      return known(ts, [declaration, ...overriding]);
    }
    if (ts.isMethodSignature(declaration) || ts.isPropertySignature(declaration)) {
      const functions = this.implementations.of(declaration);
      return functions.length === 0 ? ANYTHING : { functions, isUnknown: false };
    }
    if (ts.isShorthandPropertyAssignment(declaration)) {
      const value = this.#checker.getShorthandAssignmentValueSymbol(declaration);
      const [only] = value?.declarations ?? [];
      return only === undefined ? ANYTHING : this.#declared(only, false);
    }
    if (
      ts.isVariableDeclaration(declaration) ||
      ts.isPropertyDeclaration(declaration) ||
      ts.isPropertyAssignment(declaration)
    ) {
      const { initializer } = declaration;
      const fn = initializer && functionIn(ts, initializer);
      if (fn !== undefined) return { functions: [fn], isUnknown: false };
      const value = initializer && bare(ts, initializer);
      const isName = value !== undefined && (ts.isIdentifier(value) || ts.isPropertyAccessExpression(value));
      return isName ? this.of(value) : ANYTHING;
    }
    return ANYTHING;
  }

  #isLibrary(declaration: TS.Declaration): boolean {
    const file = declaration.getSourceFile();
    return file.isDeclarationFile || this.#program.isSourceFileFromExternalLibrary(file);
  }
}

/** The methods of a function that call it. */
const CALLERS: ReadonlySet<string> = new Set(["apply", "call"]);

/** The built-in functions that run a callback before they return their result, or as a part of it. */
const RUN_CALLBACKS: ReadonlySet<string> = new Set(
  (
    "every filter find findIndex findLast findLastIndex flatMap forEach from fromAsync groupBy map reduce reduceRight " +
    "replace replaceAll some sort toSorted catch finally then try Promise"
  ).split(" "),
);

function either(all: readonly Callees[]): Callees {
  return {
    functions: [...new Set(all.flatMap(({ functions }) => functions))],
    isUnknown: all.length === 0 || all.some(({ isUnknown }) => isUnknown),
  };
}

function known(ts: typeof TS, declarations: readonly TS.Declaration[]): Callees {
  return { functions: declarations.filter((one) => isFunctionWithBody(ts, one)), isUnknown: false };
}
