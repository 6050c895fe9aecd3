import type * as TS from "typescript";
import { isTestFile } from "./test-files";
import { functionIn, isFunctionWithBody, type Callable } from "./syntax";

type Type = TS.ClassLikeDeclaration | TS.ObjectLiteralExpression;

/** The classes and objects that have a member with the same name. */
interface Named {
  readonly classes: Set<TS.ClassLikeDeclaration>;
  readonly objects: Set<TS.ObjectLiteralExpression>;
  /** The member of each type, if it is a function, and its position among all of them. */
  readonly functions: Map<Type, { readonly fn: Callable; readonly order: number }>;
  classesByBase?: ReadonlyMap<TS.Symbol, readonly TS.ClassLikeDeclaration[]>;
  objectsByType?: ReadonlyMap<TS.Symbol, readonly TS.ObjectLiteralExpression[]>;
}

interface Found {
  readonly all: readonly Callable[];
  readonly declared: readonly Callable[];
}

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
  readonly #found = new Map<TS.Node, Found>();
  readonly #basesOf = new Map<TS.Declaration, readonly TS.Symbol[]>();
  #named: ReadonlyMap<string, Named> | undefined;

  constructor(ts: typeof TS, program: TS.Program) {
    this.#ts = ts;
    this.#program = program;
    this.#checker = program.getTypeChecker();
  }

  /** Returns the functions that implement or override the member, without the member itself. */
  of(member: Member): readonly Callable[] {
    return this.#find(member).all;
  }

  /** Returns those whose class or object declares that it implements the member's type, or extends it. */
  declaredOf(member: Member): readonly Callable[] {
    return this.#find(member).declared;
  }

  #find(member: Member): Found {
    const known = this.#found.get(member);
    if (known !== undefined) return known;
    this.#named ??= this.#index();
    const named = this.#named.get(member.name.getText());
    const found = named === undefined ? { all: [], declared: [] } : this.#below(member.parent, named);
    this.#found.set(member, found);
    return found;
  }

  #below(parent: TS.Node, named: Named): Found {
    const wanted = this.#checker.getTypeAtLocation(parent);
    named.classesByBase ??= this.#grouped(named.classes, (one) => this.#allBasesOf(one));
    const functionsOf = (types: ReadonlySet<Type>): Callable[] =>
      [...types]
        .flatMap((type) => (type === parent ? [] : (named.functions.get(type) ?? [])))
        .toSorted((a, b) => a.order - b.order)
        .map(({ fn }) => fn);
    const found = new Set<Type>(named.classesByBase.get(wanted.symbol));
    if (this.#ts.isClassLike(parent)) {
      const functions = functionsOf(found);
      return { all: functions, declared: functions };
    }
    named.objectsByType ??= this.#grouped(named.objects, (one) => this.#typesOf(one));
    for (const one of named.objectsByType.get(wanted.symbol) ?? []) found.add(one);
    const declared = functionsOf(found);
    // The type arguments of a generic type are unknown.
    if (hasTypeParameters(parent)) return { all: declared, declared };
    for (const one of this.#classesOfShape(wanted, named.classes)) found.add(one);
    const all = functionsOf(found);
    if (all.length > 0) return { all, declared };
    // An object that does not name the interface is a guess, so it counts only if nothing else implements the interface.
    for (const one of named.objects) if (this.#hasMembersOf(one, wanted)) found.add(one);
    return { all: functionsOf(found), declared };
  }

  #classesOfShape(
    wanted: TS.Type,
    classes: ReadonlySet<TS.ClassLikeDeclaration>,
  ): readonly TS.ClassLikeDeclaration[] {
    return [...classes].filter(
      (one) =>
        !hasTypeParameters(one) &&
        this.#checker.isTypeAssignableTo(this.#checker.getTypeAtLocation(one), wanted),
    );
  }

  /** Whether the object has each member of the type. Unlike in an assignment, it may have others, too. */
  #hasMembersOf(object: TS.ObjectLiteralExpression, wanted: TS.Type): boolean {
    const type = this.#checker.getTypeAtLocation(object);
    return wanted.getProperties().every((member) => {
      const own = type.getProperty(member.name);
      if (own === undefined) return (member.flags & this.#ts.SymbolFlags.Optional) !== 0;
      return this.#checker.isTypeAssignableTo(
        this.#checker.getTypeOfSymbol(own),
        this.#checker.getTypeOfSymbol(member),
      );
    });
  }

  /** Returns the members that the method implements: of interfaces that its class declares to implement, and of abstract classes. */
  implementedBy({ name, parent }: TS.MethodDeclaration): readonly Member[] {
    const ts = this.#ts;
    if (!ts.isClassLike(parent)) return [];
    return (parent.heritageClauses ?? [])
      .flatMap(({ types }) => types)
      .flatMap((one) => this.#parts(this.#checker.getTypeAtLocation(one)))
      .flatMap((type) => type.getProperty(name.getText())?.declarations ?? [])
      .filter((one) => ts.isMethodSignature(one) || ts.isPropertySignature(one) || isAbstractMember(ts, one));
  }

  #index(): Map<string, Named> {
    const ts = this.#ts;
    const all = new Map<string, Named>();
    const visit = (node: TS.Node): void => {
      if (ts.isClassLike(node) || ts.isObjectLiteralExpression(node)) {
        for (const member of ts.isClassLike(node) ? node.members : node.properties) {
          const name = member.name?.getText();
          if (name === undefined) continue;
          const named = all.get(name) ?? { classes: new Set(), objects: new Set(), functions: new Map() };
          all.set(name, named);
          if (ts.isClassLike(node)) named.classes.add(node);
          else named.objects.add(node);
          const fn = named.functions.has(node) ? undefined : functionOf(ts, member);
          if (fn !== undefined) named.functions.set(node, { fn, order: named.functions.size });
        }
      }
      ts.forEachChild(node, visit);
    };
    const { configFilePath } = this.#program.getCompilerOptions();
    const config = typeof configFilePath === "string" ? configFilePath : undefined;
    for (const file of this.#program.getSourceFiles()) {
      if (file.isDeclarationFile || this.#program.isSourceFileFromExternalLibrary(file)) continue;
      // Test fakes need no locks, and never run alongside the other implementations.
      if (!isTestFile(file.fileName, config)) visit(file);
    }
    return all;
  }

  #grouped<T extends Type>(
    types: ReadonlySet<T>,
    symbolsOf: (type: T) => Iterable<TS.Symbol>,
  ): Map<TS.Symbol, T[]> {
    const groups = new Map<TS.Symbol, T[]>();
    for (const type of types) {
      for (const symbol of symbolsOf(type)) {
        const group = groups.get(symbol);
        if (group === undefined) groups.set(symbol, [type]);
        else group.push(type);
      }
    }
    return groups;
  }

  /** Returns the types that the context of an object literal expects. */
  #typesOf(object: TS.ObjectLiteralExpression): Iterable<TS.Symbol> {
    const context = this.#checker.getContextualType(object);
    return new Set(context && this.#symbolsOf(context));
  }

  /** Returns the types that a class extends or implements, directly or not. */
  #allBasesOf(declaration: TS.ClassLikeDeclaration): Iterable<TS.Symbol> {
    const all = new Set(this.#directBasesOf(declaration));
    for (const base of all) {
      for (const one of base.declarations ?? [])
        for (const further of this.#directBasesOf(one)) all.add(further);
    }
    return all;
  }

  #directBasesOf(declaration: TS.Declaration): readonly TS.Symbol[] {
    const ts = this.#ts;
    if (!ts.isClassLike(declaration) && !ts.isInterfaceDeclaration(declaration)) return [];
    const known = this.#basesOf.get(declaration);
    if (known !== undefined) return known;
    const bases = (declaration.heritageClauses ?? [])
      .flatMap(({ types }) => types)
      .flatMap((one) => this.#symbolsOf(this.#checker.getTypeAtLocation(one)));
    this.#basesOf.set(declaration, bases);
    return bases;
  }

  #symbolsOf(type: TS.Type): TS.Symbol[] {
    // The symbol of a type that has no name is `undefined`, although TypeScript declares it as defined.
    return this.#parts(type).flatMap(({ symbol }: Partial<TS.Type>) => symbol ?? []);
  }

  /** Returns the parts of a union or an intersection, or the type itself. */
  #parts(type: TS.Type): readonly TS.Type[] {
    return type.isUnionOrIntersection() ? type.types : [type];
  }
}

function isAbstractMember(
  ts: typeof TS,
  declaration: TS.Declaration,
): declaration is TS.MethodDeclaration | TS.PropertyDeclaration {
  return (
    (ts.isMethodDeclaration(declaration) || ts.isPropertyDeclaration(declaration)) &&
    (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Abstract) !== 0
  );
}

function hasTypeParameters(node: TS.Node): boolean {
  return ((node as Partial<TS.InterfaceDeclaration>).typeParameters ?? []).length > 0;
}

function functionOf(ts: typeof TS, member: TS.ClassElement | TS.ObjectLiteralElement): Callable | undefined {
  if (isFunctionWithBody(ts, member)) return member;
  const { initializer } = member as Partial<TS.PropertyAssignment>;
  return initializer && functionIn(ts, initializer);
}
