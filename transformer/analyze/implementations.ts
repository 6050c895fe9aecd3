import type * as TS from "typescript";
import { functionIn, isFunctionWithBody, type Callable } from "./syntax";

type Type = TS.ClassLikeDeclaration | TS.ObjectLiteralExpression;

/** A member of a type that other types may implement or override. */
export type Member =
  TS.MethodDeclaration | TS.MethodSignature | TS.PropertySignature | TS.PropertyDeclaration;

/**
 * Finds the functions of the program that may implement a member of an interface or a class. A type counts if it declares that it
 * implements the other one, or if it has its shape.
 */
export class Implementations {
  readonly #ts: typeof TS;
  readonly #program: TS.Program;
  readonly #checker: TS.TypeChecker;
  readonly #found = new Map<TS.Node, readonly Callable[]>();
  #byName: ReadonlyMap<string, readonly Type[]> | undefined;

  constructor(ts: typeof TS, program: TS.Program) {
    this.#ts = ts;
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /** Returns the functions that implement or override the member, without the member itself. */
  of(member: Member): readonly Callable[] {
    const known = this.#found.get(member);
    if (known !== undefined) return known;
    const name = member.name.getText();
    const { parent } = member;
    this.#byName ??= this.#index();
    const found = (this.#byName.get(name) ?? [])
      .filter((type) => type !== parent && this.#isA(type, parent))
      .flatMap((type) => memberNamed(this.#ts, type, name) ?? []);
    this.#found.set(member, found);
    return found;
  }

  /** Returns the members of the interfaces that the method's class declares to implement. */
  implementedBy({ name, parent }: TS.MethodDeclaration): readonly Member[] {
    const ts = this.#ts;
    if (!ts.isClassLike(parent)) return [];
    return (parent.heritageClauses ?? [])
      .filter(({ token }) => token === ts.SyntaxKind.ImplementsKeyword)
      .flatMap(({ types }) => types)
      .flatMap((one) => this.#parts(this.#checker.getTypeAtLocation(one)))
      .flatMap((type) => type.getProperty(name.getText())?.declarations ?? [])
      .filter((one) => ts.isMethodSignature(one) || ts.isPropertySignature(one));
  }

  #index(): Map<string, Type[]> {
    const ts = this.#ts;
    const byName = new Map<string, Type[]>();
    const visit = (node: TS.Node): void => {
      if (ts.isClassLike(node) || ts.isObjectLiteralExpression(node)) {
        for (const member of ts.isClassLike(node) ? node.members : node.properties) {
          const name = member.name?.getText();
          if (name === undefined) continue;
          const types = byName.get(name);
          if (types === undefined) byName.set(name, [node]);
          else types.push(node);
        }
      }
      ts.forEachChild(node, visit);
    };
    for (const file of this.#program.getSourceFiles()) {
      if (!file.isDeclarationFile && !this.#program.isSourceFileFromExternalLibrary(file)) visit(file);
    }
    return byName;
  }

  #isA(type: Type, parent: TS.Node): boolean {
    const ts = this.#ts;
    const wanted = this.#checker.getTypeAtLocation(parent);
    if (ts.isObjectLiteralExpression(type)) {
      if (ts.isClassLike(parent)) return false;
      const context = this.#checker.getContextualType(type);
      return context !== undefined && this.#parts(context).some((one) => one.symbol === wanted.symbol);
    }
    const own = this.#checker.getTypeAtLocation(type);
    if (this.#extends(own, type, wanted.symbol)) return true;
    // Only the shape decides here. Types with parameters do not count, because their arguments are unknown.
    const isPlain = !hasTypeParameters(type) && !hasTypeParameters(parent);
    return !ts.isClassLike(parent) && isPlain && this.#checker.isTypeAssignableTo(own, wanted);
  }

  #extends(own: TS.Type, declaration: TS.ClassLikeDeclaration, wanted: TS.Symbol | undefined): boolean {
    if (wanted === undefined) return false;
    const heritage = (declaration.heritageClauses ?? []).flatMap(({ types }) => types);
    return heritage.some((one) =>
      this.#parts(this.#checker.getTypeAtLocation(one)).some(
        (base) => base.symbol === wanted || this.#inherits(base, wanted, 0),
      ),
    );
  }

  #inherits({ symbol }: TS.Type, wanted: TS.Symbol, depth: number): boolean {
    const ts = this.#ts;
    if (symbol === undefined || depth > 20) return false;
    return (symbol.declarations ?? []).some((declaration) => {
      if (!ts.isClassLike(declaration) && !ts.isInterfaceDeclaration(declaration)) return false;
      return (declaration.heritageClauses ?? [])
        .flatMap(({ types }) => types)
        .flatMap((one) => this.#parts(this.#checker.getTypeAtLocation(one)))
        .some((base) => base.symbol === wanted || this.#inherits(base, wanted, depth + 1));
    });
  }

  /** Returns the parts of a union or an intersection, or the type itself. */
  #parts(type: TS.Type): readonly TS.Type[] {
    return type.isUnionOrIntersection() ? type.types : [type];
  }
}

function hasTypeParameters(node: TS.Node): boolean {
  return ((node as Partial<TS.InterfaceDeclaration>).typeParameters ?? []).length > 0;
}

/** Returns the function that a class or an object has under the name. */
function memberNamed(ts: typeof TS, type: Type, name: string): Callable | undefined {
  for (const member of ts.isClassLike(type) ? type.members : type.properties) {
    if (member.name?.getText() !== name) continue;
    if (isFunctionWithBody(ts, member)) return member;
    const { initializer } = member as Partial<TS.PropertyAssignment>;
    const fn = initializer && functionIn(ts, initializer);
    if (fn !== undefined) return fn;
  }
  return undefined;
}
