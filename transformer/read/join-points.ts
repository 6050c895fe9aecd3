import type * as TS from "typescript";
import type { Source } from "../parser/parser";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { isJavaScript } from "./module-syntax";
import { targetOf, type FoundFunction } from "./tagged-node";
import { hasOwnPromise, isAsync, type AnyFunction, type LockableFunction } from "./syntax";
import { parseTags, type Tag } from "./tag";
import { mentionsIn, NEED_NAME, TAG_NAME } from "./spelling";

/** A tag on a function that can be woven. */
export interface JoinPoint extends FoundFunction {
  readonly fn: LockableFunction;
  readonly tag: Tag;
  /** The reason not to weave the function, although that would be possible. */
  readonly flaw: Problem | undefined;
}

/** A function whose tag cannot be honored. It must not run unlocked. */
export interface Forbidden {
  readonly body: TS.ConciseBody;
  readonly because: Problem;
}

export interface Found {
  /** The functions with `@redisLock`. */
  readonly points: JoinPoint[];
  /** Each `@needsLock` with its function. A function may need several locks. */
  readonly needs: JoinPoint[];
  readonly forbidden: Forbidden[];
  /** Problems of tags that have no function body that could refuse to run. */
  readonly bodiless: Problem[];
  readonly problems: Problem[];
  /** Attributes without a tag, above functions that could have a lock. */
  readonly warnings: Problem[];
  /** The positions of tags, and of text that was meant as a tag. */
  readonly mentions: Span[];
}

/**
 * Finds every tag in a comment of the file, with the function that follows it. Reads the comments directly, because the compiler
 * does not parse JSDoc (TypeScript 5.3 and later).
 */
export function findJoinPoints(source: Source): Found {
  const points: JoinPoint[] = [];
  const needs: JoinPoint[] = [];
  const forbidden: Forbidden[] = [];
  const bodiless: Problem[] = [];
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const mentions: Span[] = [];
  const tagged = new Set<TS.Node>();
  for (const { comment, path } of commentsThatMentionIt(source)) {
    const parsed = parseTags(source.file.text, comment);
    const [tag] = parsed.tags;
    const [lock, secondLock] = parsed.tags.filter(({ name }) => name === TAG_NAME);
    const at = tag?.word ?? parsed.problems[0];
    if (at === undefined) {
      if (parsed.strayAttributes !== undefined && mayHaveLock(source, comment, path, parsed.strayAttributes))
        warnings.push(problem("attributesAlone", parsed.strayAttributes));
      continue;
    }
    mentions.push(at);
    const target = targetOf(source, comment, path, at, tag?.word.text);
    const isOnlyNeeded = tag !== undefined && lock === undefined;
    problems.push(...parsed.problems);
    const misplaced = !("fn" in target)
      ? target.because
      : isOnlyNeeded
        ? bodyProblem(source, target, at, tag.word.text)
        : placementProblem(source, target, lock?.word ?? at, secondLock?.word, tagged);
    if (misplaced !== undefined && tag !== undefined) problems.push(misplaced);
    const flaw = misplaced ?? parsed.problems[0];
    if ("fn" in target && isLockable(target.fn) && tag !== undefined && misplaced === undefined) {
      const { fn, name, promised, named, holder, type, typeOf } = target;
      for (const one of parsed.tags) {
        const all = one.name === NEED_NAME ? needs : points;
        all.push({ fn, tag: one, name, promised, named, holder, type, typeOf, flaw });
      }
    } else if (flaw !== undefined) {
      forbidden.push(...target.bodies.map((body) => ({ body, because: flaw })));
      if (target.bodies.length === 0) bodiless.push(flaw);
    }
    if ("fn" in target && !isOnlyNeeded) tagged.add(target.fn);
  }
  const refused = new Set(forbidden.map(({ body }) => body));
  const isAllowed = ({ fn }: JoinPoint): boolean => !refused.has(fn.body);
  return {
    points: points.filter(isAllowed),
    needs: needs.filter(isAllowed),
    forbidden,
    bodiless,
    problems,
    warnings,
    mentions,
  };
}

function bodyProblem(
  { ts }: Source,
  { fn }: FoundFunction,
  at: Span,
  tag = `@${TAG_NAME}`,
): Problem | undefined {
  if (fn.body !== undefined) return undefined;
  const isAbstract = fn.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) ?? false;
  const isDeclared = fn.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) ?? false;
  return problem(
    "noBody",
    at,
    isAbstract ? "An abstract method" : isDeclared ? "A declared function" : "An overload signature",
    tag,
  );
}

function placementProblem(
  source: Source,
  found: FoundFunction,
  at: Span,
  secondTag: Span | undefined,
  tagged: ReadonlySet<TS.Node>,
): Problem | undefined {
  const { ts, file } = source;
  const { fn, name, promised } = found;
  const ofBody = bodyProblem(source, found, at);
  if (ofBody !== undefined) return ofBody;
  if (fn.asteriskToken !== undefined && !isAsync(ts, fn)) return problem("generatorTagged", at);
  if (!isAsync(ts, fn)) {
    const types = isJavaScript(file) ? [] : ["Promise<...>"]; // JavaScript has no syntax for a return type.
    if (promised === undefined) return problem("notAsync", at, name, ...types);
    if (hasOwnPromise(ts, file)) return problem("ownPromise", at, name);
  }
  const repeated = tagged.has(fn) ? at : secondTag;
  return repeated && problem("twoTags", repeated);
}

function mayHaveLock(source: Source, comment: Span, path: readonly TS.Node[], at: Span): boolean {
  const target = targetOf(source, comment, path, at);
  return "fn" in target && placementProblem(source, target, at, undefined, new Set()) === undefined;
}

function isLockable(fn: AnyFunction): fn is LockableFunction {
  return fn.body !== undefined;
}

// ---- comments --------------------------------------------------------------------------------------------

/** A comment that mentions the tag. */
interface Mention {
  readonly comment: Span;
  /** The nodes around the comment, from the file inwards. */
  readonly path: TS.Node[];
}

/** Yields the comments that mention the tag, each with the nodes around it. */
export function* commentsThatMentionIt(source: Source): Iterable<Mention> {
  let seenUpTo = 0;
  for (const index of mentionsIn(source.file.text)) {
    if (index < seenUpTo) continue;
    const path = nodesAround(source, index);
    const comment = commentAround(source, path, index);
    if (comment === undefined) continue; // The mention is in code: a decorator, a string, or JSX text.
    seenUpTo = comment.end;
    yield { comment, path };
  }
}

function nodesAround({ ts, file }: Source, offset: number): TS.Node[] {
  const path: TS.Node[] = [];
  for (let node: TS.Node | undefined = file; node !== undefined;) {
    path.push(node);
    node = ts.forEachChild(node, (child) => (child.pos <= offset && offset < child.end ? child : undefined));
  }
  return path;
}

/** Returns the comment at `offset`. Scans only the text between two nodes, because a literal could mislead the scanner. */
function commentAround({ ts, file }: Source, path: TS.Node[], offset: number): Span | undefined {
  const innermost = path.at(-1) ?? file;
  let start = innermost.pos;
  let end = innermost.end;
  let isLeaf = true; // The node is a token or is empty. An empty node can contain comments.
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
