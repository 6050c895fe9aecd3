import type * as TS from "typescript";
import type { Step } from "./reach";
import { bare, type Callable } from "./syntax";

type Class = TS.ClassLikeDeclaration;

/**
 * Knows of which class `this` is, as far as a path of calls shows it. If a method of a base class calls `this.save()`, only one
 * implementation of `save` runs, and it depends on the object on which the path called the method.
 */
export class Instances {
  readonly #ts: typeof TS;
  readonly #checker: TS.TypeChecker;

  constructor(ts: typeof TS, checker: TS.TypeChecker) {
    this.#ts = ts;
    this.#checker = checker;
  }

  /**
   * Returns the class of `this` in the caller, or `undefined` if it may be any.
   *
   * @param by the function that contains the call
   * @param own the class of `this` in the called function, if the rest of the path shows it
   * @returns `"impossible"` if the call runs the function of another class
   */
  before(
    by: Callable,
    { call, to, isCallback }: Step,
    own: Class | undefined,
  ): Class | undefined | "impossible" {
    const ts = this.#ts;
    const around = this.#memberAround(to);
    if (this.#ts.isArrowFunction(to) && around !== undefined && this.#memberAround(by) === around) return own;
    const wanted = own ?? this.#classOf(around);
    const called = bare(ts, call.expression);
    if (isCallback || wanted === undefined || !ts.isPropertyAccessExpression(called)) return undefined;
    const receiver = bare(ts, called.expression);
    if (receiver.kind === ts.SyntaxKind.ThisKeyword || receiver.kind === ts.SyntaxKind.SuperKeyword) {
      const calling = this.#classOf(this.#memberAround(by));
      if (calling === undefined) return undefined;
      if (this.#isSameOrBelow(wanted, calling)) return wanted;
      return this.#isSameOrBelow(calling, wanted) ? calling : "impossible";
    }
    const classes = this.#classesOf(receiver);
    const isPossible = classes.some(
      (one) => one === undefined || this.#isSameOrBelow(one, wanted) || this.#isSameOrBelow(wanted, one),
    );
    return isPossible ? undefined : "impossible";
  }

  /** Returns the member of a class that determines `this` in the function. An arrow function has the `this` of the code around it. */
  #memberAround(fn: Callable): TS.ClassElement | undefined {
    const ts = this.#ts;
    let node: TS.Node = fn;
    while (ts.isArrowFunction(node) || !(ts.isFunctionLike(node) || ts.isClassElement(node))) {
      if (ts.isSourceFile(node)) return undefined;
      node = node.parent;
    }
    return ts.isClassElement(node) ? node : undefined;
  }

  #classOf(member: TS.ClassElement | undefined): Class | undefined {
    const ts = this.#ts;
    if (member === undefined || !ts.isClassLike(member.parent)) return undefined;
    return (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Static) === 0 ? member.parent : undefined;
  }

  /** Returns the classes of which the value may be. `undefined` stands for anything else, such as an interface. */
  #classesOf(expression: TS.Expression): readonly (Class | undefined)[] {
    const type = this.#checker.getTypeAtLocation(expression).getNonNullableType();
    const parts = type.isUnion() ? type.types : [type];
    return parts.map((one) => {
      const declaration = one.isClass() || one.isClassOrInterface() ? one.symbol.valueDeclaration : undefined;
      const target = (one as Partial<TS.TypeReference>).target?.symbol?.valueDeclaration;
      const found = declaration ?? target;
      return found !== undefined && this.#ts.isClassLike(found) ? found : undefined;
    });
  }

  /** Whether the class is the other one, or extends it, directly or not. */
  #isSameOrBelow(one: Class, other: Class): boolean {
    for (let at: Class | undefined = one; at !== undefined; at = this.#baseOf(at))
      if (at === other) return true;
    return false;
  }

  #baseOf(one: Class): Class | undefined {
    const ts = this.#ts;
    const extended = one.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)
      ?.types[0];
    if (extended === undefined) return undefined;
    const named = this.#checker.getSymbolAtLocation(extended.expression);
    if (named === undefined) return undefined;
    const isAlias = (named.flags & ts.SymbolFlags.Alias) !== 0;
    const base = (isAlias ? this.#checker.getAliasedSymbol(named) : named).valueDeclaration;
    return base !== undefined && ts.isClassLike(base) ? base : undefined;
  }
}
