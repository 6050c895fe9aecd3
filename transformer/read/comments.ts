import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Span } from "../text/span";
import { mentionsIn } from "./spelling";

/** A comment that mentions the tag. */
export interface Mention {
  readonly comment: Span;
  /** The nodes around the comment, from the file inwards. */
  readonly path: TS.Node[];
}

/** Yields the comments that mention the tag, each with the nodes around it. */
export function* commentsThatMentionIt(ts: Parser, file: TS.SourceFile): Iterable<Mention> {
  let seenUpTo = 0;
  for (const index of mentionsIn(file.text)) {
    if (index < seenUpTo) continue;
    const path = nodesAround(ts, file, index);
    const comment = commentAround(ts, file, path, index);
    if (comment === undefined) continue; // The mention is in code: a decorator, a string, or JSX text.
    seenUpTo = comment.end;
    yield { comment, path };
  }
}

function nodesAround(ts: Parser, file: TS.SourceFile, offset: number): TS.Node[] {
  const path: TS.Node[] = [];
  for (let node: TS.Node | undefined = file; node !== undefined;) {
    path.push(node);
    node = ts.forEachChild(node, (child) => (child.pos <= offset && offset < child.end ? child : undefined));
  }
  return path;
}

/** Returns the comment at `offset`. Scans only the text between two nodes, because a literal could mislead the scanner. */
function commentAround(ts: Parser, file: TS.SourceFile, path: TS.Node[], offset: number): Span | undefined {
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
