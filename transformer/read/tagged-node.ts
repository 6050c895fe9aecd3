import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import {
  directives,
  describe,
  roleOf,
  type AnyFunction,
  documentedParameter,
  documentedReturn,
  promisedBy,
  type Promised,
} from "./syntax";
import { isJavaScript } from "./module-syntax";
import { statementsOf } from "./names";
import { TAG_NAME } from "./spelling";

export interface FoundFunction {
  readonly fn: AnyFunction;
  /** The name of the function in messages: `OrderService.pay`. */
  readonly name: string;
  /** Set if the function declares that it returns a promise. */
  readonly promised: Promised | undefined;
  /** The name of the variable or property whose value is the function. */
  readonly named: Span | undefined;
  /** The node that contains the function. */
  readonly holder: TS.Node;
  /** The return type, as the file writes it. */
  readonly type: TS.TypeNode | undefined;
  /** Returns the type of a parameter, as the file writes it. */
  readonly typeOf: (parameter: TS.ParameterDeclaration) => TS.TypeNode | undefined;
}

/** The target of a tag: a function, or the reason why there is none. The `bodies` must not run unlocked. */
export type Target = { readonly bodies: readonly TS.ConciseBody[] } & (
  FoundFunction | { readonly because: Problem }
);

/**
 * Finds the function that the comment precedes. Searches from the node after the comment inwards.
 *
 * @param tag the tag in messages: `@redisLock`
 */
export function targetOf(
  source: Source,
  comment: Span,
  path: readonly TS.Node[],
  at: Span,
  tag = `@${TAG_NAME}`,
): Target {
  const { ts, file } = source;
  const { owner, outer } = ownerOf(source, comment, path);
  if (owner === undefined)
    return { because: problem("dangling", at, tag), bodies: bodiesAround(ts, path, comment) };
  const inner: TS.Node[] = [];
  for (let node: TS.Node | undefined = owner; node !== undefined;) {
    const role = roleOf(source, node);
    if (role.is === "function") {
      const { fn } = role;
      const bodies = fn.body === undefined ? implementationOf(source, outer.at(-1) ?? file, fn) : [fn.body];
      const around = [...nodesPassingOn(source, outer, owner), ...inner];
      const promised = promisedBy(ts, fn, around);
      const name = nameOf(source, [...outer, ...inner, fn]);
      const holder = [...outer, ...inner].at(-1) ?? file;
      const isDocumented = isJavaScript(file);
      const type = isDocumented ? documentedReturn(ts, [...around, fn]) : fn.type;
      const typeOf: FoundFunction["typeOf"] = (parameter) =>
        isDocumented ? documentedParameter(ts, [...around, fn], parameter) : parameter.type;
      return { fn, name, promised, named: namedBy(source, around), holder, type, typeOf, bodies };
    }
    if (role.is === "never") {
      const inside = bodiesIn(ts, node);
      const bodies = inside.length > 0 ? inside : bodyStartingWith(ts, outer, owner);
      return { because: problem(role.why, at, ...role.words, tag), bodies };
    }
    inner.push(node);
    node = role.is === "around" ? role.inside : undefined;
  }
  const around = outer.at(-1) ?? file;
  const innermost = inner.at(-1) ?? owner;
  const named = functionsNamedIn(source, innermost, outer);
  const isWhole = ts.isFunctionLike(around) || ts.isSemicolonClassElement(owner);
  const inside = [...bodiesIn(ts, isWhole ? around : owner), ...named.bodies];
  const bodies = inside.length > 0 ? inside : bodyStartingWith(ts, outer, owner);
  const isHidden = named.isAnyHidden && bodies.length === 0;
  const because = problem(isHidden ? "functionElsewhere" : "notAFunction", at, describe(ts, innermost), tag);
  return { because, bodies };
}

/** Returns the name of the function that the comment documents in a declaration file, if the comment precedes a function. */
export function declaredFunctionAt(
  source: Source,
  comment: Span,
  path: readonly TS.Node[],
): string | undefined {
  const { owner, outer } = ownerOf(source, comment, path);
  if (owner === undefined || roleOf(source, owner).is !== "function") return undefined;
  return nameOf(source, [...outer, owner]);
}

/** Returns the outermost node that begins with the comment. The comment may also be among the node's modifiers or before its name. */
function ownerOf(
  { ts, file }: Source,
  comment: Span,
  path: readonly TS.Node[],
): { owner: TS.Node | undefined; outer: readonly TS.Node[] } {
  const index = path.findIndex(
    (node) => !ts.isSourceFile(node) && node.pos <= comment.start && comment.end <= node.getStart(file),
  );
  const first = path[index];
  const parent = path[index - 1];
  if (first === undefined || first.kind === ts.SyntaxKind.EndOfFileToken)
    return { owner: undefined, outer: [] };
  const isPartOfParent =
    parent !== undefined &&
    (ts.isModifier(first) || ts.isDecorator(first) || ("name" in parent && parent.name === first));
  return isPartOfParent
    ? { owner: parent, outer: path.slice(0, index - 1) }
    : { owner: first, outer: path.slice(0, index) };
}

/** Returns the innermost nodes around the expression that only name it or pass it on. */
function nodesPassingOn(source: Source, around: readonly TS.Node[], expression: TS.Node): readonly TS.Node[] {
  const path = [...around, expression];
  const other = around.findLastIndex((node, index) => {
    const role = roleOf(source, node);
    return role.is !== "around" || role.inside !== path[index + 1];
  });
  return around.slice(other + 1);
}

function namedBy({ ts, file }: Source, around: readonly TS.Node[]): Span | undefined {
  const declaration = around.findLast(
    (node) =>
      ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node),
  );
  const name = declaration && "name" in declaration ? (declaration.name as TS.Node) : undefined;
  return name && { start: name.getStart(file), end: name.end };
}

/** Returns the bodies of the outermost functions in the node, or the node's own body if it is a function. */
function bodiesIn(ts: Parser, node: TS.Node): TS.ConciseBody[] {
  if (ts.isFunctionLike(node)) {
    const { body } = node as { readonly body?: TS.ConciseBody };
    return body === undefined ? [] : [body];
  }
  const bodies: TS.ConciseBody[] = [];
  ts.forEachChild(node, (child) => void bodies.push(...bodiesIn(ts, child)));
  return bodies;
}

/** Returns the body that begins with the statement. A tag before the statement may be meant for the function around it. */
function bodyStartingWith(ts: Parser, outer: readonly TS.Node[], statement: TS.Node): TS.ConciseBody[] {
  const [fn, block] = outer.slice(-2);
  if (fn === undefined || block === undefined || !ts.isFunctionLike(fn) || !ts.isBlock(block)) return [];
  return block.statements[directives(ts, block).length] === statement ? [block] : [];
}

/**
 * Returns the bodies of the innermost function, variable, property, or class around the comment. A body that contains the comment does not
 * count.
 */
function bodiesAround(ts: Parser, path: readonly TS.Node[], comment: Span): TS.ConciseBody[] {
  const holder = path.findLast(
    (node) =>
      ts.isFunctionLike(node) ||
      ts.isVariableDeclaration(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isPropertyAssignment(node) ||
      ts.isClassLike(node),
  );
  const bodies = holder === undefined ? [] : bodiesIn(ts, holder);
  return bodies.filter(({ pos, end }) => comment.end <= pos || end <= comment.start);
}

/** Returns the bodies of functions that the node passes on by name. `isAnyHidden` says that this file does not declare all of them. */
function functionsNamedIn(
  source: Source,
  node: TS.Node,
  outer: readonly TS.Node[],
): { bodies: TS.ConciseBody[]; isAnyHidden: boolean } {
  const { ts } = source;
  if (ts.isImportDeclaration(node)) return { bodies: [], isAnyHidden: true };
  const found = namesPassedOn(ts, node).map((name) => bodiesNamed(source, name, outer));
  return { bodies: found.flat(), isAnyHidden: found.some((bodies) => bodies.length === 0) };
}

/**
 * Returns the names that the node passes on: `pay` in `export default pay`, `export { pay }`, `{ pay }`, `{ now: pay }`, and `retry(pay)`.
 * An expression without a name counts as `""`.
 */
function namesPassedOn(ts: Parser, node: TS.Node): string[] {
  if (ts.isIdentifier(node)) return [node.text];
  if (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node)) return [""];
  if (ts.isShorthandPropertyAssignment(node)) return [node.name.text];
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    return (node.arguments ?? []).flatMap((argument) => namesPassedOn(ts, argument));
  }
  if (ts.isObjectLiteralExpression(node)) return node.properties.flatMap((each) => namesPassedOn(ts, each));
  if (ts.isPropertyAssignment(node)) return namesPassedOn(ts, node.initializer);
  if (ts.isConditionalExpression(node))
    return [node.whenTrue, node.whenFalse].flatMap((each) => namesPassedOn(ts, each));
  if (ts.isExportSpecifier(node)) return [(node.propertyName ?? node.name).text];
  if (!ts.isExportDeclaration(node)) return [];
  const { exportClause, moduleSpecifier } = node;
  if (moduleSpecifier !== undefined || exportClause === undefined || !ts.isNamedExports(exportClause))
    return [""];
  return exportClause.elements.map(({ name, propertyName = name }) => propertyName.text);
}

/** Returns the bodies of the functions that the name refers to, from the innermost scope that declares it. */
function bodiesNamed({ ts, file }: Source, name: string, outer: readonly TS.Node[]): TS.ConciseBody[] {
  for (const scope of [file, ...outer].toReversed()) {
    const bodies = statementsOf(ts, scope).flatMap((statement): TS.ConciseBody[] => {
      if (ts.isFunctionDeclaration(statement)) {
        return statement.name?.text === name && statement.body !== undefined ? [statement.body] : [];
      }
      if (!ts.isVariableStatement(statement)) return [];
      const declared = statement.declarationList.declarations.filter(
        (each) => ts.isIdentifier(each.name) && each.name.text === name,
      );
      return declared.flatMap(({ initializer }) =>
        initializer === undefined ? [] : bodiesIn(ts, initializer),
      );
    });
    if (bodies.length > 0) return bodies;
  }
  return [];
}

/** Returns the body of the implementation of an overload signature. */
function implementationOf(source: Source, around: TS.Node, signature: AnyFunction): TS.ConciseBody[] {
  const { ts, file } = source;
  const bodies: TS.ConciseBody[] = [];
  ts.forEachChild(around, (sibling) => {
    const role = roleOf(source, sibling);
    const isOfThatName =
      role.is === "function" && role.fn.name?.getText(file) === signature.name?.getText(file);
    if (isOfThatName && role.fn.body !== undefined) bodies.push(role.fn.body);
  });
  return bodies;
}

function nameOf(source: Source, path: readonly TS.Node[]): string {
  const names = path.flatMap((node, index) =>
    isNamedTwice(source.ts, node, path[index - 1]) ? [] : (roleOf(source, node).name ?? []),
  );
  return names.length === 0 ? "anonymous" : names.join(".");
}

/** Whether a class repeats the name of its variable: `let Orders = class Orders`, as compilers write it. */
function isNamedTwice(ts: Parser, node: TS.Node, around: TS.Node | undefined): boolean {
  return (
    ts.isClassExpression(node) &&
    around !== undefined &&
    ts.isVariableDeclaration(around) &&
    ts.isIdentifier(around.name) &&
    around.name.text === node.name?.text
  );
}
