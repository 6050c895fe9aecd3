import type * as TS from "typescript";
import { isAsync, isTypedPromise } from "./async-keyword";
import { problem, type Problem, type Span } from "./diagnostics";
import { parseTags, type Tag } from "./tag";

export type LockableFunction = (
  TS.FunctionDeclaration | TS.MethodDeclaration | TS.FunctionExpression | TS.ArrowFunction
) & { readonly body: TS.ConciseBody };

/** A tagged function that can be locked. */
export interface JoinPoint {
  readonly fn: LockableFunction;
  readonly tag: Tag;
  /** What people call the function: `OrderService.pay`. */
  readonly name: string;
  /** Why the function is not to be woven, although it could be. */
  readonly flaw: Problem | undefined;
}

/** A function whose tag cannot be honoured: it must not run unlocked. */
export interface Forbidden {
  readonly body: TS.ConciseBody;
  readonly because: Problem;
}

export interface Found {
  readonly points: JoinPoint[];
  readonly forbidden: Forbidden[];
  readonly problems: Problem[];
}

/** Cheap, and never misses a tag: most files have none and are not looked at any further. */
export function mayHaveTags(text: string): boolean {
  return /@redis[-_]?lock/i.test(text);
}

/**
 * Every `@redisLock` in a comment of the file, with the function it stands before. Reads the raw comments:
 * the compiler does not parse JSDoc (TypeScript 5.3 and later).
 */
export function findJoinPoints(ts: typeof TS, file: TS.SourceFile): Found {
  const points: JoinPoint[] = [];
  const forbidden: Forbidden[] = [];
  const problems: Problem[] = [];
  const tagged = new Set<TS.Node>();
  for (const { comment, path } of commentsThatMentionIt(ts, file)) {
    const parsed = parseTags(file.text, comment);
    const [tag, secondTag] = parsed.tags;
    const at = tag?.word ?? parsed.problems[0];
    if (at === undefined) continue;
    const place = placeOf(ts, file, comment, path, at);
    problems.push(...parsed.problems);
    const misplaced = "fn" in place ? whyNot(ts, place, at, secondTag?.word, tagged) : place.because;
    if (misplaced !== undefined && tag !== undefined) problems.push(misplaced);
    const flaw = misplaced ?? parsed.problems[0];
    if ("fn" in place && isLockable(place.fn) && tag !== undefined && misplaced === undefined) {
      points.push({ fn: place.fn, tag, name: place.name, flaw });
    } else {
      if (flaw !== undefined) forbidden.push(...place.bodies.map((body) => ({ body, because: flaw })));
    }
    if ("fn" in place) tagged.add(place.fn);
  }
  const refused = new Set(forbidden.map(({ body }) => body));
  return { points: points.filter(({ fn }) => !refused.has(fn.body)), forbidden, problems };
}

// ---- comments -------------------------------------------------------------------------------------------

interface Mention {
  readonly comment: Span;
  /** The nodes around the comment, from the file inwards. */
  readonly path: TS.Node[];
}

function* commentsThatMentionIt(ts: typeof TS, file: TS.SourceFile): Iterable<Mention> {
  let seenUpTo = 0;
  for (const { index } of file.text.matchAll(/@redis[-_]?lock/gi)) {
    if (index < seenUpTo) continue;
    const path = nodesAround(ts, file, index);
    const comment = commentAround(ts, file, path, index);
    if (comment === undefined) continue; // In code: a decorator, a string, JSX text.
    seenUpTo = comment.end;
    yield { comment, path };
  }
}

function nodesAround(ts: typeof TS, file: TS.SourceFile, offset: number): TS.Node[] {
  const path: TS.Node[] = [];
  for (let node: TS.Node | undefined = file; node !== undefined;) {
    path.push(node);
    node = ts.forEachChild(node, (child) => (child.pos <= offset && offset < child.end ? child : undefined));
  }
  return path;
}

/** The comment at `offset`, found with the scanner between two nodes, where no literal can mislead it. */
function commentAround(
  ts: typeof TS,
  file: TS.SourceFile,
  path: TS.Node[],
  offset: number,
): Span | undefined {
  const innermost = path.at(-1) ?? file;
  let start = innermost.pos;
  let end = innermost.end;
  let isLeaf = true; // A token, or something empty, which can hold comments too.
  ts.forEachChild(innermost, (child) => {
    isLeaf = false;
    if (child.end <= offset) start = Math.max(start, child.end);
    else end = Math.min(end, child.pos);
  });
  if (isLeaf && ts.isToken(innermost) && offset >= innermost.getStart(file)) return undefined;
  const scanner = ts.createScanner(
    ts.ScriptTarget.Latest,
    false,
    file.languageVariant,
    file.text,
    undefined,
    start,
    end - start,
  );
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    const isComment =
      token === ts.SyntaxKind.MultiLineCommentTrivia || token === ts.SyntaxKind.SingleLineCommentTrivia;
    if (scanner.getTokenStart() <= offset && offset < scanner.getTokenEnd()) {
      return isComment ? { start: scanner.getTokenStart(), end: scanner.getTokenEnd() } : undefined;
    }
  }
  return undefined;
}

// ---- from the comment to the function -------------------------------------------------------------------

interface FoundFunction {
  readonly fn: AnyFunction;
  readonly name: string;
  /** It is `async`, or says that it returns a promise. */
  readonly canBeAsync: boolean;
}

/** `bodies`: what must not run unlocked. */
type Place = { readonly bodies: readonly TS.ConciseBody[] } & (FoundFunction | { readonly because: Problem });

/** What the comment stands before. */
function placeOf(ts: typeof TS, file: TS.SourceFile, comment: Span, path: TS.Node[], at: Span): Place {
  const { owner, outer } = ownerOf(ts, file, comment, path);
  if (owner === undefined) return { because: problem("dangling", at), bodies: [] };
  const inner: TS.Node[] = [];
  let node: TS.Node | undefined = owner;
  while (node !== undefined && !isAnyFunction(ts, node)) {
    const because = cannotLeadToFunction(ts, node, at);
    if (because !== undefined) return { because, bodies: bodiesIn(ts, node) };
    inner.push(node);
    node = insideOf(ts, node);
  }
  const around = outer.at(-1) ?? file;
  if (node === undefined) {
    const because = problem("notAFunction", at, describe(ts, inner.at(-1) ?? owner));
    return { because, bodies: bodiesIn(ts, ts.isFunctionLike(around) ? around : owner) };
  }
  const bodies = node.body === undefined ? implementationOf(ts, file, around, node) : [node.body];
  const canBeAsync =
    isAsync(ts, node) || isTypedPromise(ts, node, [...handingOn(ts, outer, owner), ...inner]);
  return { fn: node, name: nameOf(ts, file, [...outer, ...inner, node]), canBeAsync, bodies };
}

/** The outermost node that begins with the comment; the comment may also stand among its modifiers. */
function ownerOf(
  ts: typeof TS,
  file: TS.SourceFile,
  comment: Span,
  path: TS.Node[],
): { owner: TS.Node | undefined; outer: TS.Node[] } {
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

type AnyFunction = TS.FunctionDeclaration | TS.MethodDeclaration | TS.FunctionExpression | TS.ArrowFunction;

function cannotLeadToFunction(ts: typeof TS, node: TS.Node, at: Span): Problem | undefined {
  if (ts.isConstructorDeclaration(node)) return problem("constructorTagged", at);
  if (ts.isAccessor(node)) return problem("accessorTagged", at);
  if (ts.isMethodSignature(node) || ts.isPropertySignature(node)) {
    return problem("noBody", at, "A member of a type");
  }
  const isVariables = ts.isVariableDeclarationList(node) && node.declarations.length > 1;
  return isVariables ? problem("severalVariables", at) : undefined;
}

function isAnyFunction(ts: typeof TS, node: TS.Node): node is AnyFunction {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node)
  );
}

/** The expression that a declaration or statement gives its name to, or hands on. */
function insideOf(ts: typeof TS, node: TS.Node): TS.Node | undefined {
  if (ts.isVariableStatement(node)) return node.declarationList;
  if (ts.isVariableDeclarationList(node)) return node.declarations[0];
  if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node)) {
    return node.initializer;
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) return node.right;
  if (
    ts.isExportAssignment(node) ||
    ts.isExpressionStatement(node) ||
    ts.isReturnStatement(node) ||
    ts.isParenthesizedExpression(node) ||
    ts.isAwaitExpression(node) || // Where an outer function is woven, of what it returns.
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node)
  ) {
    return node.expression;
  }
  return undefined;
}

/** Of the nodes around the expression, those that do nothing but give it a name or hand it on. */
function handingOn(ts: typeof TS, around: readonly TS.Node[], expression: TS.Node): readonly TS.Node[] {
  const path = [...around, expression];
  const other = around.findLastIndex((node, index) => insideOf(ts, node) !== path[index + 1]);
  return around.slice(other + 1);
}

function describe(ts: typeof TS, node: TS.Node): string {
  // The first name of a kind is its own, the others are marks such as `FirstStatement`.
  const [name = ""] = Object.entries(ts.SyntaxKind).find(([, kind]) => kind === node.kind) ?? [];
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}

/** The bodies of the outermost functions in the node, or its own if it is a function itself. */
function bodiesIn(ts: typeof TS, node: TS.Node): TS.ConciseBody[] {
  if (ts.isFunctionLike(node)) {
    const { body } = node as { readonly body?: TS.ConciseBody };
    return body === undefined ? [] : [body];
  }
  const bodies: TS.ConciseBody[] = [];
  ts.forEachChild(node, (child) => void bodies.push(...bodiesIn(ts, child)));
  return bodies;
}

/** The body that stands behind an overload signature. */
function implementationOf(
  ts: typeof TS,
  file: TS.SourceFile,
  around: TS.Node,
  signature: AnyFunction,
): TS.ConciseBody[] {
  const bodies: TS.ConciseBody[] = [];
  ts.forEachChild(around, (sibling) => {
    const isOfThatName =
      isAnyFunction(ts, sibling) && sibling.name?.getText(file) === signature.name?.getText(file);
    if (isOfThatName && sibling.body !== undefined) bodies.push(sibling.body);
  });
  return bodies;
}

// ---- what cannot be locked ------------------------------------------------------------------------------

function whyNot(
  ts: typeof TS,
  { fn, name, canBeAsync }: FoundFunction,
  at: Span,
  secondTag: Span | undefined,
  tagged: ReadonlySet<TS.Node>,
): Problem | undefined {
  if (fn.body === undefined) {
    const isAbstract = fn.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) ?? false;
    const isDeclared = fn.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) ?? false;
    return problem(
      "noBody",
      at,
      isAbstract ? "An abstract method" : isDeclared ? "A declared function" : "An overload signature",
    );
  }
  if (fn.asteriskToken !== undefined && !isAsync(ts, fn)) return problem("generatorTagged", at);
  if (!canBeAsync) return problem("notAsync", at, name);
  const again = tagged.has(fn) ? at : secondTag;
  return again && problem("twoTags", again);
}

function isLockable(fn: AnyFunction): fn is LockableFunction {
  return fn.body !== undefined;
}

// ---- names ----------------------------------------------------------------------------------------------

function nameOf(ts: typeof TS, file: TS.SourceFile, path: readonly TS.Node[]): string {
  const names = path.flatMap((node) => {
    if (ts.isExportAssignment(node)) return ["default"];
    if (ts.isBinaryExpression(node)) return [node.left.getText(file)];
    if (ts.isFunctionDeclaration(node)) return [node.name?.text ?? "default"];
    const isNamed =
      isAnyFunction(ts, node) ||
      ts.isClassLike(node) ||
      ts.isModuleDeclaration(node) ||
      ts.isVariableDeclaration(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isPropertyAssignment(node);
    if (!isNamed || node.name === undefined) return [];
    return [ts.isStringLiteral(node.name) ? node.name.text : node.name.getText(file)];
  });
  return names.length === 0 ? "anonymous" : names.join(".");
}
