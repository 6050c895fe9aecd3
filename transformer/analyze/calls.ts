import type * as TS from "typescript";
import { CalleeFinder, type Unknown } from "./callees";
import type { Member } from "./implementations";
import { Names } from "./names";
import { bare, CONTINUES, isFunctionWithBody, type Callable } from "./syntax";

/** A call in a body that runs other functions of the program. */
export interface Call {
  readonly node: TS.CallExpression | TS.NewExpression;
  readonly runs: readonly Callable[];
  /** Whether the call passes the functions as callbacks, which run before the caller continues. */
  readonly isCallback: boolean;
  /** The functions of the program that get the callbacks, and the number of the parameter. A built-in function may get them instead. */
  readonly givenTo?: { readonly functions: readonly Callable[]; readonly index: number };
  /** Whether the body waits until what the call runs is done. */
  readonly isWaited: boolean;
}

/** A call or a callback that could not be followed. */
export interface Unfollowed {
  readonly node: TS.Node;
  readonly why: Unknown;
}

/** Finds what the functions of a program call. Each function is analyzed once, when it is first needed. */
export class Calls {
  readonly unfollowed: Unfollowed[] = [];
  readonly names: Names;
  readonly #ts: typeof TS;
  readonly #holders: ReadonlySet<Callable>;
  readonly #checker: TS.TypeChecker;
  readonly #callees: CalleeFinder;
  readonly #calls = new Map<Callable, readonly Call[]>();
  readonly #promiseTypes = new Map<TS.Type, boolean>();
  readonly #calledParametersOf = new Map<Callable, ReadonlySet<string>>();

  /**
   * @param holders the functions with locks. A callback that is passed to one of them runs under its lock, no matter which code passes it.
   */
  constructor(ts: typeof TS, program: TS.Program, holders: ReadonlySet<Callable>) {
    this.#ts = ts;
    this.#holders = holders;
    this.names = new Names(ts);
    this.#checker = program.getTypeChecker();
    this.#callees = new CalleeFinder(ts, program);
  }

  /** Returns the calls in the function itself, and not in functions inside it. */
  in(fn: Callable): readonly Call[] {
    const known = this.#calls.get(fn);
    if (known !== undefined) return known;
    const calls: Call[] = [];
    this.#calls.set(fn, calls);
    for (const node of this.nodesIn(fn)) {
      if (this.#ts.isCallExpression(node) || this.#ts.isNewExpression(node))
        calls.push(...this.#callsAt(node, fn));
    }
    return calls;
  }

  /** Returns every node of the function's own code. */
  *nodesIn(fn: Callable): Iterable<TS.Node> {
    const ts = this.#ts;
    const pending: TS.Node[] = [fn.body, ...fn.parameters.toReversed()];
    for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
      if (ts.isFunctionLike(node) || ts.isClassLike(node)) continue;
      yield node;
      const children: TS.Node[] = [];
      ts.forEachChild(node, (child) => void children.push(child));
      pending.push(...children.toReversed());
    }
  }

  /** Whether the callee ignores what its callback returns. A promise waits for the callback of its `finally`. */
  dropsResult(argument: TS.Expression): boolean {
    if (this.#isForFinally(argument)) return false;
    const context = this.#checker.getContextualType(argument);
    const signatures = context?.getNonNullableType().getCallSignatures() ?? [];
    return (
      signatures.length > 0 &&
      signatures.every((one) => (one.getReturnType().flags & this.#ts.TypeFlags.Void) !== 0)
    );
  }

  #isForFinally({ parent }: TS.Expression): boolean {
    const called = this.#ts.isCallExpression(parent) ? bare(this.#ts, parent.expression) : undefined;
    if (called === undefined || !this.#ts.isPropertyAccessExpression(called)) return false;
    return called.name.text === "finally" && this.isPromise(called.expression);
  }

  /** Whether the value of an expression is a promise. */
  isPromise(expression: TS.Expression): boolean {
    return this.isPromiseType(this.#checker.getTypeAtLocation(expression));
  }

  /** Whether the value may be a promise. With any other value, there is nothing to wait for. */
  #mayBePromise(expression: TS.Expression): boolean {
    const type = this.#checker.getTypeAtLocation(expression);
    const { Any, Unknown } = this.#ts.TypeFlags;
    return (type.flags & (Any | Unknown)) !== 0 || this.isPromiseType(type);
  }

  isPromiseType(type: TS.Type): boolean {
    const known = this.#promiseTypes.get(type);
    if (known !== undefined) return known;
    const isPromise = this.#isPromiseType(type);
    this.#promiseTypes.set(type, isPromise);
    return isPromise;
  }

  #isPromiseType(type: TS.Type): boolean {
    if (type.isUnionOrIntersection()) return type.types.some((one) => this.isPromiseType(one));
    const name = type.symbol?.name;
    if (name === "Promise" || name === "PromiseLike") return true;
    return type.isClassOrInterface() && (type.getBaseTypes() ?? []).some((one) => this.isPromiseType(one));
  }

  /** Returns the functions of the program that implement or override the member, as their types declare. */
  implementationsOf(member: Member): readonly Callable[] {
    return this.#callees.implementations.declaredOf(member);
  }

  /** Returns the members of interfaces and abstract classes that the method implements, as its class declares. */
  implementedBy(method: TS.MethodDeclaration): readonly Member[] {
    return this.#callees.implementations.implementedBy(method);
  }

  /** Returns the type of an array's elements, or `undefined` if the value is not an array. */
  elementOf(expression: TS.Expression): TS.Type | undefined {
    const type = this.#checker.getTypeAtLocation(expression);
    if (!this.#checker.isArrayType(type)) return undefined;
    return this.#checker.getTypeArguments(type as TS.TypeReference)[0];
  }

  returnsPromise(fn: Callable): boolean {
    const signature = this.#checker.getSignatureFromDeclaration(fn);
    return signature !== undefined && this.isPromiseType(signature.getReturnType());
  }

  /** Whether a call of the argument returns a promise. */
  returnsPromiseWhenCalled(argument: TS.Expression): boolean {
    const signatures = this.#checker.getTypeAtLocation(argument).getCallSignatures();
    return signatures.some((one) => this.isPromiseType(one.getReturnType()));
  }

  #callsAt(node: TS.CallExpression | TS.NewExpression, caller: Callable): Call[] {
    const ts = this.#ts;
    const isWaited = this.isWaited(node);
    const calls: Call[] = [];
    const { functions, isUnknown } = ts.isNewExpression(node)
      ? { functions: [], isUnknown: false }
      : this.#callees.of(node.expression);
    if (isUnknown && isWaited && this.#mayBePromise(node) && !this.#isGivenTo(caller, node.expression)) {
      this.unfollowed.push({ node: node.expression, why: "dynamic" });
    }
    if (functions.length > 0) calls.push({ node, runs: functions, isCallback: false, isWaited });
    for (const [index, argument] of (node.arguments ?? []).entries()) {
      const passed = this.#callees.ofArgument(argument);
      if (passed === undefined) continue;
      const callbacks = passed.functions;
      if (this.#isRunBy(node.expression, functions, index)) {
        const isDropped = this.dropsResult(argument) && this.returnsPromiseWhenCalled(argument);
        const givenTo = { functions, index };
        calls.push({ node, runs: callbacks, isCallback: true, givenTo, isWaited: isWaited && !isDropped });
      } else if (functions.length === 0 && !isUnknown) {
        const mayWait = isWaited && this.#mayBePromise(node) && this.returnsPromiseWhenCalled(argument);
        const mayMatter = passed.isUnknown || callbacks.some((one) => this.in(one).length > 0);
        if (mayWait && mayMatter && !this.isOfLanguage(node))
          this.unfollowed.push({ node: argument, why: "callback" });
      }
    }
    return calls;
  }

  /**
   * Whether the body waits for the call. A body that uses a promise is assumed to wait for it. A call that returns no promise is done when
   * it returns.
   */
  isWaited(node: TS.Expression): boolean {
    const ts = this.#ts;
    let outer: TS.Expression = node;
    for (;;) {
      const { parent } = outer;
      if (ts.isExpressionStatement(parent) || ts.isVoidExpression(parent)) return !this.isPromise(outer);
      const isPassedOn =
        (ts.isExpression(parent) && bare(ts, parent) === bare(ts, outer)) ||
        (ts.isBinaryExpression(parent) && parent.right === outer && isChoice(ts, parent)) ||
        (ts.isConditionalExpression(parent) && parent.condition !== outer) ||
        (ts.isPropertyAccessExpression(parent) && CONTINUES.has(parent.name.text)) ||
        (ts.isCallExpression(parent) && parent.expression === outer);
      if (!isPassedOn) return true;
      outer = parent;
    }
  }

  /** Whether the callee runs its argument before it returns its result. */
  #isRunBy(called: TS.Expression, callees: readonly Callable[], index: number): boolean {
    if (callees.length > 0) return callees.some((callee) => this.#runsParameter(callee, index));
    return this.#callees.runsCallbacks(called);
  }

  #runsParameter(callee: Callable, index: number): boolean {
    const parameter = callee.parameters[index]?.name;
    return (
      parameter !== undefined &&
      this.#ts.isIdentifier(parameter) &&
      this.#calledParameters(callee).has(parameter.text)
    );
  }

  /** Whether all that the function does with its parameter is to call it, and not in a function inside it. */
  onlyCalls(fn: Callable, index: number): boolean {
    const ts = this.#ts;
    const name = fn.parameters[index]?.name;
    if (name === undefined || !ts.isIdentifier(name)) return false;
    const isCall = (node: TS.Node): boolean => ts.isCallExpression(node) && isName(node.expression);
    const isName = (node: TS.Node): boolean => ts.isIdentifier(node) && node.text === name.text;
    let mentions = 0;
    const visit = (node: TS.Node): void => {
      if (isName(node)) mentions += 1;
      ts.forEachChild(node, visit);
    };
    visit(fn.body);
    return mentions > 0 && [...this.nodesIn(fn)].filter(isCall).length === mentions;
  }

  /** Whether a parameter of an outer function is called. The calls of that function show what runs. */
  #isGivenTo(fn: Callable, called: TS.Expression): boolean {
    const name = bare(this.#ts, called);
    if (!this.#ts.isIdentifier(name)) return false;
    for (let node: TS.Node | undefined = fn; node !== undefined; node = node.parent) {
      if (!isFunctionWithBody(this.#ts, node) || this.#holders.has(node)) continue;
      if (this.#calledParameters(node).has(name.text)) return true;
    }
    return false;
  }

  /** Returns the parameters that the function, or one inside it, calls or passes to a function that calls them. */
  #calledParameters(fn: Callable): ReadonlySet<string> {
    const known = this.#calledParametersOf.get(fn);
    if (known !== undefined) return known;
    const ts = this.#ts;
    const parameters = new Set(
      fn.parameters.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : [])),
    );
    const called = new Set<string>();
    this.#calledParametersOf.set(fn, called);
    const visit = (node: TS.Node): void => {
      if (ts.isCallExpression(node)) {
        const name = bare(ts, node.expression);
        if (ts.isIdentifier(name) && parameters.has(name.text)) called.add(name.text);
        for (const [index, argument] of node.arguments.entries()) {
          if (!ts.isIdentifier(argument) || !parameters.has(argument.text)) continue;
          if (this.#isRunBy(node.expression, this.#callees.of(node.expression).functions, index)) {
            called.add(argument.text);
          }
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(fn.body);
    return called;
  }

  /** Whether the call is to a built-in function. Such a function stores its arguments, as an array does, or runs them later. */
  isOfLanguage({ expression }: TS.CallExpression | TS.NewExpression): boolean {
    return this.#callees.isOfLanguage(expression);
  }

  /** Returns the functions of the program that a call may run, without the callbacks that it passes. */
  calleesOf({ expression }: TS.CallExpression): readonly Callable[] {
    return this.#callees.of(expression).functions;
  }

  /** Returns the functions of the program that an argument may refer to. */
  functionsOf(argument: TS.Expression): readonly Callable[] {
    return this.#callees.ofArgument(argument)?.functions ?? [];
  }

  symbolOf(expression: TS.Expression): TS.Symbol | undefined {
    return this.#callees.symbolOf(expression);
  }

  /** Returns the variable that a name refers to, in whatever file it is declared. */
  variableOf(name: TS.Identifier): TS.VariableDeclaration | TS.ParameterDeclaration | undefined {
    const declaration = this.#callees.symbolOf(name)?.valueDeclaration;
    if (declaration === undefined) return undefined;
    const { isVariableDeclaration, isParameter } = this.#ts;
    return isVariableDeclaration(declaration) || isParameter(declaration) ? declaration : undefined;
  }

  /** Whether only the file that declares the member can name it. */
  isPrivate(name: TS.MemberName): boolean {
    if (this.#ts.isPrivateIdentifier(name)) return true;
    const declaration = this.#checker.getSymbolAtLocation(name)?.valueDeclaration;
    return (
      declaration !== undefined &&
      (this.#ts.getCombinedModifierFlags(declaration) & this.#ts.ModifierFlags.Private) !== 0
    );
  }

  isFunction(expression: TS.Expression): boolean {
    return this.#checker.getTypeAtLocation(expression).getCallSignatures().length > 0;
  }
}

function isChoice(ts: typeof TS, { operatorToken: { kind } }: TS.BinaryExpression): boolean {
  const { SyntaxKind: Kind } = ts;
  return [
    Kind.AmpersandAmpersandToken,
    Kind.BarBarToken,
    Kind.QuestionQuestionToken,
    Kind.CommaToken,
  ].includes(kind);
}
