import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { commentsThatMentionIt } from "./comments";
import { isJavaScript } from "./file-kind";
import { targetOf, type FoundFunction } from "./tagged-node";
import { hasOwnPromise, isAsync } from "./promised";
import type { AnyFunction, LockableFunction } from "./syntax";
import { parseTags, type Tag } from "./tag";

/** A tagged function that can be locked. */
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
  readonly points: JoinPoint[];
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
 * Finds every `@redisLock` in a comment of the file, with the function that follows it. Reads the comments directly, because the compiler
 * does not parse JSDoc (TypeScript 5.3 and later).
 */
export function findJoinPoints(ts: Parser, file: TS.SourceFile): Found {
  const points: JoinPoint[] = [];
  const forbidden: Forbidden[] = [];
  const bodiless: Problem[] = [];
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const mentions: Span[] = [];
  const tagged = new Set<TS.Node>();
  for (const { comment, path } of commentsThatMentionIt(ts, file)) {
    const parsed = parseTags(file.text, comment);
    const [tag, secondTag] = parsed.tags;
    const at = tag?.word ?? parsed.problems[0];
    if (at === undefined) {
      if (
        parsed.strayAttributes !== undefined &&
        mayHaveLock(ts, file, comment, path, parsed.strayAttributes)
      )
        warnings.push(problem("attributesAlone", parsed.strayAttributes));
      continue;
    }
    mentions.push(at);
    const target = targetOf(ts, file, comment, path, at);
    problems.push(...parsed.problems);
    const misplaced =
      "fn" in target ? placementProblem(ts, file, target, at, secondTag?.word, tagged) : target.because;
    if (misplaced !== undefined && tag !== undefined) problems.push(misplaced);
    const flaw = misplaced ?? parsed.problems[0];
    if ("fn" in target && isLockable(target.fn) && tag !== undefined && misplaced === undefined) {
      const { fn, name, promised, named, holder, type, typeOf } = target;
      points.push({ fn, tag, name, promised, named, holder, type, typeOf, flaw });
    } else if (flaw !== undefined) {
      forbidden.push(...target.bodies.map((body) => ({ body, because: flaw })));
      if (target.bodies.length === 0) bodiless.push(flaw);
    }
    if ("fn" in target) tagged.add(target.fn);
  }
  const refused = new Set(forbidden.map(({ body }) => body));
  return {
    points: points.filter(({ fn }) => !refused.has(fn.body)),
    forbidden,
    bodiless,
    problems,
    warnings,
    mentions,
  };
}

function placementProblem(
  ts: Parser,
  file: TS.SourceFile,
  { fn, name, promised }: FoundFunction,
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
  if (!isAsync(ts, fn)) {
    const types = isJavaScript(file) ? [] : ["Promise<...>"]; // JavaScript has no syntax for a return type.
    if (promised === undefined) return problem("notAsync", at, name, ...types);
    if (hasOwnPromise(ts, file)) return problem("ownPromise", at, name);
  }
  const repeated = tagged.has(fn) ? at : secondTag;
  return repeated && problem("twoTags", repeated);
}

function mayHaveLock(
  ts: Parser,
  file: TS.SourceFile,
  comment: Span,
  path: readonly TS.Node[],
  at: Span,
): boolean {
  const target = targetOf(ts, file, comment, path, at);
  return "fn" in target && placementProblem(ts, file, target, at, undefined, new Set()) === undefined;
}

function isLockable(fn: AnyFunction): fn is LockableFunction {
  return fn.body !== undefined;
}
