import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isJavaScript } from "./file-kind";
import { importedModule } from "./imports";
import type { JoinPoint } from "./join-points";
import { identifiersIn } from "./names";
import {
  asksForArguments,
  assignedParameters,
  declaredTwice,
  hoistsOneOf,
  redeclaredParameter,
} from "./parameters";
import { isAsync } from "./promised";
import { returnsThroughCode, returnsUnsettled, returnsValue } from "./returns";

/** A body that becomes a function inside the woven one. */
export interface Apart {
  readonly isAsync: boolean;
  /** Its return type, as the file has it. */
  readonly type: TS.TypeNode | undefined;
  /** There is no value to hand on. */
  readonly isVoid: boolean;
  /** The parameters that it gives other values. */
  readonly assigned: readonly string[];
  /** JavaScript, whose `arguments` make the compiler take the function for one that has any number of them. */
  readonly isVariadic: boolean;
  /** A parameter that a `var` in it would hide. */
  readonly hidden: string | undefined;
}

/**
 * The body becomes a function of its own
 * - when the lock is reentrant, since it needs an async context of its own;
 * - when it returns promises from where code runs on the way out, since they are to be awaited outside of it;
 * - when the function is no `async` one: what it returns is checked to be a promise, and awaited by nobody else;
 * - when it declares a name twice, as a function may and a block may not;
 * - when it hoists a name that the tag speaks of;
 * - when it says that it returns what is `Awaited`, or may be: behind an `await`, anything of a type parameter's type is that.
 */
export function apartOf(
  ts: Parser,
  file: TS.SourceFile,
  point: JoinPoint,
  reentrant: boolean,
  names: ReadonlySet<string>,
): Apart | undefined {
  const { fn, promised, type } = point;
  const isOwnAsync = isAsync(ts, fn);
  const isApart =
    reentrant ||
    !isOwnAsync ||
    returnsThroughCode(ts, fn) ||
    declaredTwice(ts, fn) !== undefined ||
    hoistsOneOf(ts, fn, names) ||
    (type !== undefined &&
      returnsUnsettled(ts, fn) &&
      maySayAwaited(ts, file, type, typeParametersOf(ts, point)));
  if (!isApart) return undefined;
  return {
    isAsync: isOwnAsync,
    type: type ?? (isOwnAsync ? undefined : promised?.type),
    isVoid: isVoid(ts, point),
    assigned: assignedParameters(ts, file, fn),
    isVariadic: isJavaScript(file) && asksForArguments(ts, fn),
    hidden: redeclaredParameter(ts, fn),
  };
}

/** By itself, by the types that the file has for it, or by what another file may make of a type parameter. */
function maySayAwaited(
  ts: Parser,
  file: TS.SourceFile,
  type: TS.TypeNode,
  parameters: readonly string[],
): boolean {
  const names = identifiersIn(ts, type);
  const isGeneric = parameters.some((name) => names.has(name));
  const named = file.statements.filter(
    (statement) => ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement),
  );
  const imports = isGeneric ? file.statements.filter((one) => importedModule(ts, one) !== undefined) : [];
  const imported = new Set<string>();
  for (const statement of imports) for (const name of identifiersIn(ts, statement)) imported.add(name);
  for (const name of names) {
    if (name === "Awaited" || imported.has(name)) return true;
    const declared = named.filter((one) => one.name.text === name);
    // A set goes on over what is added to it.
    for (const one of declared) for (const inner of identifiersIn(ts, one)) names.add(inner);
  }
  return false;
}

/** Of the function, and of the class that it is in. */
function typeParametersOf(ts: Parser, { fn, holder }: JoinPoint): readonly string[] {
  const ofClass = ts.isClassLike(holder) ? holder.typeParameters : undefined;
  return [...(fn.typeParameters ?? []), ...(ofClass ?? [])].map(({ name }) => name.text);
}

/**
 * Whether the compiler makes a `Promise<void>` of the function, even where its body never ends: of an arrow function
 * it makes a `Promise<never>` then, which no overriding method could keep to.
 */
function isVoid(ts: Parser, { fn, holder, type }: JoinPoint): boolean {
  const isDeclared = ts.isFunctionDeclaration(fn) || (ts.isMethodDeclaration(fn) && ts.isClassLike(holder));
  return isDeclared && type === undefined && !returnsValue(ts, fn.body);
}
