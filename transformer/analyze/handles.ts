import type * as TS from "typescript";
import type { Calls } from "./calls";
import { bare, isFunctionWithBody, type Callable } from "./syntax";

/** What a function knows of a transaction that the program passes on: the variables and fields that have it, or objects around it. */
export interface Handles {
  readonly symbols: ReadonlySet<TS.Symbol>;
  /** Whether `this` has it. */
  readonly isThis: boolean;
}

/** Follows the handle of a transaction, such as `tx`, through variables, arguments, and objects. */
export class HandleFlow {
  readonly #ts: typeof TS;
  readonly #program: TS.Program;
  readonly #checker: TS.TypeChecker;
  readonly #calls: Calls;
  readonly #hasMethods = new Map<TS.Type, boolean>();

  constructor(ts: typeof TS, program: TS.Program, calls: Calls) {
    this.#ts = ts;
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#calls = calls;
  }

  /** Returns the symbols that a variable's name or pattern declares. Parts of a pattern that hold only data are left out. */
  declaredBy(name: TS.BindingName): TS.Symbol[] {
    if (this.#ts.isIdentifier(name)) {
      const symbol = this.#checker.getSymbolAtLocation(name);
      const isRow =
        this.#ts.isBindingElement(name.parent) && !this.#mayBeHandle(this.#checker.getTypeAtLocation(name));
      return symbol === undefined || isRow ? [] : [symbol];
    }
    return name.elements.flatMap((one) => (this.#ts.isBindingElement(one) ? this.declaredBy(one.name) : []));
  }

  /** Adds the variables and fields to which the function assigns a handle. */
  within(fn: Callable, { symbols, isThis }: Handles): Handles {
    const ts = this.#ts;
    const all = new Set(symbols);
    const known = { symbols: all, isThis };
    for (const node of this.#calls.nodesIn(fn)) {
      if (ts.isVariableDeclaration(node) && node.initializer && this.carries(node.initializer, known)) {
        for (const one of this.declaredBy(node.name)) all.add(one);
      } else if (
        ts.isBinaryExpression(node) &&
        node.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
        this.carries(node.right, known)
      ) {
        const target = this.#calls.symbolOf(bare(ts, node.left));
        if (target !== undefined) all.add(target);
      }
    }
    return known;
  }

  /** Returns the handles that a called function gets. A function inside another one also sees those of the outer one. */
  passedTo(
    callee: Callable,
    call: TS.CallExpression | TS.NewExpression,
    isCallback: boolean,
    known: Handles,
  ): Handles {
    if (isCallback) return known;
    const ts = this.#ts;
    const symbols = new Set(known.symbols);
    const called = bare(ts, call.expression);
    const isThis =
      (ts.isPropertyAccessExpression(called) || ts.isElementAccessExpression(called)) &&
      (called.expression.kind === ts.SyntaxKind.SuperKeyword
        ? known.isThis
        : this.carries(called.expression, known));
    const given = call.arguments ?? [];
    callee.parameters.forEach(({ name, dotDotDotToken }, index) => {
      const values = dotDotDotToken === undefined ? given.slice(index, index + 1) : given.slice(index);
      if (values.some((value) => this.carries(value, known)))
        for (const one of this.declaredBy(name)) symbols.add(one);
    });
    return { symbols, isThis };
  }

  /** Whether the function gets the transaction: by a parameter, by `this`, or by a variable around it. */
  isIn(fn: Callable, known: Handles): boolean {
    return this.isUsedIn(fn.body, known) || fn.parameters.some((one) => this.isUsedIn(one, known));
  }

  isUsedIn(node: TS.Node, known: Handles): boolean {
    const ts = this.#ts;
    if (known.isThis && node.kind === ts.SyntaxKind.ThisKeyword) return true;
    if (ts.isIdentifier(node)) return this.#has(known, node);
    return ts.forEachChild(node, (child) => this.isUsedIn(child, known) || undefined) ?? false;
  }

  /** Whether the value is the handle, or an object that has it. The result of a query is neither. */
  carries(expression: TS.Expression, known: Handles): boolean {
    const ts = this.#ts;
    const value = bare(ts, expression);
    const any = (...values: readonly (TS.Expression | undefined)[]): boolean =>
      values.some((one) => one !== undefined && this.carries(one, known));
    if (value.kind === ts.SyntaxKind.ThisKeyword) return known.isThis;
    if (isFunctionWithBody(ts, value)) return this.isIn(value, known);
    if (ts.isIdentifier(value)) return this.#has(known, value) && this.#isObject(value);
    if (ts.isPropertyAccessExpression(value) || ts.isElementAccessExpression(value)) {
      return (this.#has(known, value) || any(value.expression)) && this.#isObject(value);
    }
    if (ts.isCallExpression(value) || ts.isNewExpression(value)) {
      return (
        any(value.expression, ...(value.arguments ?? [])) && this.#isObject(value) && !this.#isRow(value)
      );
    }
    if (ts.isObjectLiteralExpression(value)) {
      return value.properties.some((one) => {
        if (ts.isShorthandPropertyAssignment(one)) return this.#has(known, one.name);
        if (ts.isSpreadAssignment(one)) return any(one.expression);
        return ts.isPropertyAssignment(one) && any(one.initializer);
      });
    }
    if (ts.isArrayLiteralExpression(value)) return any(...value.elements);
    if (ts.isSpreadElement(value)) return any(value.expression);
    if (ts.isConditionalExpression(value)) return any(value.whenTrue, value.whenFalse);
    if (ts.isBinaryExpression(value)) return any(value.left, value.right) && this.#isObject(value);
    return false;
  }

  #has({ symbols }: Handles, expression: TS.Expression): boolean {
    const symbol = this.#calls.symbolOf(expression);
    return symbol !== undefined && symbols.has(symbol);
  }

  /** Whether a library returns an object of the project's own type, or an array of them, as `manager.create(Order)` does. */
  #isRow(call: TS.CallExpression | TS.NewExpression): boolean {
    const isOfProject = ({ declarations = [] }: TS.Symbol): boolean =>
      declarations.some((one) => !one.getSourceFile().isDeclarationFile);
    const called = this.#calls.symbolOf(bare(this.#ts, call.expression));
    // The symbol of a type that has no name is `undefined`, although TypeScript declares it as defined.
    const { symbol }: Partial<TS.Type> = this.#calls.elementOf(call) ?? this.#checker.getTypeAtLocation(call);
    return called !== undefined && !isOfProject(called) && symbol !== undefined && isOfProject(symbol);
  }

  /** Whether the value may be a handle. A string or a row cannot, and a promise is the result of a query. */
  #isObject(expression: TS.Expression): boolean {
    const type = this.#checker.getTypeAtLocation(expression);
    return this.#mayBeHandle(type) && !this.#calls.isPromiseType(type);
  }

  /** Whether values of the type, or of its properties, have methods, as each handle does. Rows have only data, such as dates. */
  #mayBeHandle(type: TS.Type, depth = 0): boolean {
    const { Object: object, TypeParameter, Any, Unknown, NonPrimitive } = this.#ts.TypeFlags;
    if ((type.flags & (Any | Unknown | NonPrimitive | TypeParameter)) !== 0) return depth === 0;
    if (type.isUnionOrIntersection()) return type.types.some((one) => this.#mayBeHandle(one, depth));
    if ((type.flags & object) === 0) return false;
    if (type.getCallSignatures().length > 0) return true;
    const known = this.#hasMethods.get(type);
    if (known !== undefined || depth === DEEPEST) return known ?? false;
    this.#hasMethods.set(type, false); // It may contain itself.
    const isData = type.getProperty("toJSON") !== undefined; // A decimal, or a row of Sequelize or Mongoose.
    const mayBe = !isData && this.#partsOf(type).some((one) => this.#mayBeHandle(one, depth + 1));
    this.#hasMethods.set(type, mayBe);
    return mayBe;
  }

  /** Returns the types of the properties, without those of the language, and the type arguments, such as that of an array. */
  #partsOf(type: TS.Type): readonly TS.Type[] {
    const { objectFlags, target } = type as TS.TypeReference;
    const isReference = (objectFlags & this.#ts.ObjectFlags.Reference) !== 0;
    const given = isReference ? this.#checker.getTypeArguments(type as TS.TypeReference) : [];
    const isOfLanguage = ({ declarations = [] }: TS.Symbol): boolean =>
      declarations.some((one) => this.#program.isSourceFileDefaultLibrary(one.getSourceFile()));
    const properties = type.getProperties().filter((one) => !isOfLanguage(one));
    return [
      // The last argument may be the type of `this`.
      ...given.slice(0, target?.typeParameters?.length ?? 0),
      ...properties.map((one) => this.#checker.getTypeOfSymbol(one)),
    ];
  }
}

/** The depth of properties to look for methods. A generic type may go on forever. */
const DEEPEST = 3;
