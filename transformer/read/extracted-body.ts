import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isJavaScript } from "./file-kind";
import { importedModule } from "./imports";
import type { JoinPoint } from "./join-points";
import { identifiersIn } from "./names";
import {
  usesArguments,
  assignedParameters,
  declaredTwice,
  hoistsOneOf,
  redeclaredParameter,
} from "./parameters";
import { isAsync } from "./promised";
import { runsCodeAfterReturn, mayReturnPromise, returnsValue } from "./returns";

/** A body that becomes a function inside the woven function. */
export interface ExtractedBody {
  readonly isAsync: boolean;
  /** The return type, as the file writes it. */
  readonly type: TS.TypeNode | undefined;
  /** Whether the body returns no value. The woven function then has no `return` for it. */
  readonly isVoid: boolean;
  /** The parameters to which the body assigns. */
  readonly assigned: readonly string[];
  /** Whether the body is JavaScript that uses `arguments`. The compiler then infers that the function takes any number of arguments. */
  readonly isVariadic: boolean;
  /** A parameter that a `var` of the body would hide. */
  readonly hidden: string | undefined;
}

/**
 * Returns the extracted body, or `undefined` if the body stays in the woven function. The body is extracted if:
 * - the lock is reentrant, because the body then needs an async context of its own;
 * - code runs after it returns a promise, because the woven code must await the promise outside of that code;
 * - the function is not `async`, because the compiler must check that the body returns a promise, which only the woven code awaits;
 * - it declares a name twice, which a function allows and a block does not;
 * - it hoists a name that the tag uses;
 * - its declared type is or may be `Awaited`, because an added `await` makes `Awaited<T>` of the type parameter `T`.
 */
export function extractedBodyOf(
  ts: Parser,
  file: TS.SourceFile,
  point: JoinPoint,
  reentrant: boolean,
  names: ReadonlySet<string>,
): ExtractedBody | undefined {
  const { fn, promised, type } = point;
  const isOwnAsync = isAsync(ts, fn);
  const isExtracted =
    reentrant ||
    !isOwnAsync ||
    runsCodeAfterReturn(ts, fn) ||
    declaredTwice(ts, fn) !== undefined ||
    hoistsOneOf(ts, fn, names) ||
    (type !== undefined &&
      mayReturnPromise(ts, fn) &&
      mayContainAwaited(ts, file, type, typeParametersOf(ts, point)));
  if (!isExtracted) return undefined;
  return {
    isAsync: isOwnAsync,
    type: type ?? (isOwnAsync ? undefined : promised?.type),
    isVoid: isVoid(ts, point),
    assigned: assignedParameters(ts, file, fn),
    isVariadic: isJavaScript(file) && usesArguments(ts, fn),
    hidden: redeclaredParameter(ts, fn),
  };
}

/**
 * Whether the type contains `Awaited`: directly, through a type of this file, or possibly through an imported type that gets a type
 * parameter.
 */
function mayContainAwaited(
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
    // The iteration of a set includes the names that are added meanwhile.
    for (const one of declared) for (const inner of identifiersIn(ts, one)) names.add(inner);
  }
  return false;
}

/** Returns the names of the type parameters of the function and of its class. */
function typeParametersOf(ts: Parser, { fn, holder }: JoinPoint): readonly string[] {
  const ofClass = ts.isClassLike(holder) ? holder.typeParameters : undefined;
  return [...(fn.typeParameters ?? []), ...(ofClass ?? [])].map(({ name }) => name.text);
}

/**
 * Whether the compiler infers `Promise<void>` for the function, even if its body never ends. For such an arrow function, it infers
 * `Promise<never>`, which no overriding method can match.
 */
function isVoid(ts: Parser, { fn, holder, type }: JoinPoint): boolean {
  const isDeclared = ts.isFunctionDeclaration(fn) || (ts.isMethodDeclaration(fn) && ts.isClassLike(holder));
  return isDeclared && type === undefined && !returnsValue(ts, fn.body);
}
