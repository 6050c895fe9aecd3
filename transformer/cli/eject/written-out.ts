import type * as TS from "typescript";
import type { Compiler } from "../../hosts/ts-patch/compiler";
import type { Parser, Source } from "../../parser/parser";
import { LOCKED_BY } from "../../read/disguises";
import { runtimeNames } from "../../read/module-syntax";
import { wovenMark } from "../../read/woven-mark";
import type { WovenSource } from "../../verify/project";
import type { Woven } from "../../weave/weave";

const TAG = "@redisLock";
/** Returns the source with its locks written as code. The text of the tags remains as comments. */
export function writtenOut(ts: Compiler, source: WovenSource): string {
  return formatted(ts, source, withoutTags(source));
}

/** Returns the woven source with its tags. */
export function wovenText(ts: Compiler, source: WovenSource): string {
  return formatted(ts, source, source.woven.code);
}

function formatted(ts: Compiler, { fileName, woven }: WovenSource, code: string): string {
  const withLineBreaks = applied(code, lineBreaks(parsed(ts, fileName, code), woven));
  return applied(withLineBreaks, formatting(ts, fileName, withLineBreaks));
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function applied(text: string, edits: readonly Edit[]): string {
  let result = text;
  for (const { start, end, text: by } of edits.toSorted((a, b) => b.start - a.start)) {
    result = result.slice(0, start) + by + result.slice(end);
  }
  return result;
}

export function parsed(ts: Compiler, fileName: string, text: string): Source {
  return { ts, file: ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true) };
}

/** Replaces the tags in the woven code. The weave only inserts text, so both texts contain the same tags in the same order. */
function withoutTags({ text, woven: { code, sites } }: WovenSource): string {
  const tags = new Set(sites.map(({ start }) => start));
  let before = -1;
  return code.replaceAll(TAG, () => {
    before = text.indexOf(TAG, before + 1);
    // The replacement is as long as the tag, so the lines below it in the comment stay aligned.
    return tags.has(before) ? LOCKED_BY : TAG;
  });
}

// ---- one statement a line -------------------------------------------------------------------------------

function lineBreaks(source: Source, { namespace }: Woven): Edit[] {
  const { ts, file } = source;
  const newLine = file.text.includes("\r\n") ? "\r\n" : "\n";
  const edits: Edit[] = [];
  const between = (start: number, end: number): void => {
    if (/^[ \t]*$/.test(file.text.slice(start, end))) edits.push({ start, end, text: newLine });
  };
  const breakBlock = (block: TS.Block): void => {
    const { statements, end } = block;
    let last = block.getStart(file) + 1;
    for (const statement of statements) {
      between(last, statement.getStart(file));
      last = statement.end;
    }
    between(last, end - 1);
  };
  for (const body of wovenBodies(source)) {
    breakBlock(body);
    const tryStatement = body.statements.at(-1);
    if (tryStatement === undefined || !ts.isTryStatement(tryStatement)) continue;
    breakBlock(tryStatement.tryBlock);
    if (tryStatement.catchClause !== undefined) breakBlock(tryStatement.catchClause.block);
    if (tryStatement.finallyBlock !== undefined) breakBlock(tryStatement.finallyBlock);
    const extracted = extractedBody(ts, tryStatement.tryBlock);
    if (extracted !== undefined) breakBlock(extracted);
  }
  const runtimeImport = file.statements.find(
    (statement) => namespace !== undefined && runtimeNames(ts, statement).includes(namespace),
  );
  const next = runtimeImport && file.statements[file.statements.indexOf(runtimeImport) + 1];
  if (runtimeImport !== undefined && next !== undefined) between(runtimeImport.end, next.getStart(file));
  return edits;
}

/** Returns the bodies with a woven lock, in source order. */
export function wovenBodies(source: Source): TS.Block[] {
  const { ts, file } = source;
  const isWoven = wovenMark(source);
  const bodies: TS.Block[] = [];
  const visit = (node: TS.Node): void => {
    const { body } = node as { readonly body?: TS.ConciseBody };
    if (ts.isFunctionLike(node) && body !== undefined && ts.isBlock(body) && isWoven(body)) bodies.push(body);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return bodies;
}

/** Returns the extracted body, such as the arrow function in `return await lockweave.runReentrant(lock, async () => { ... })`. */
function extractedBody(ts: Parser, { statements }: TS.Block): TS.Block | undefined {
  const last = statements.at(-1);
  let node: TS.Node | undefined = last && ts.isReturnStatement(last) ? last.expression : undefined;
  while (node !== undefined && !ts.isArrowFunction(node)) {
    if (ts.isAwaitExpression(node) || ts.isParenthesizedExpression(node)) node = node.expression;
    else if (ts.isCallExpression(node))
      node = node.arguments.find((one) => ts.isArrowFunction(one)) ?? node.expression;
    else return undefined;
  }
  return node !== undefined && ts.isBlock(node.body) ? node.body : undefined;
}

// ---- indentation ----------------------------------------------------------------------------------------

/** Returns the edits of TypeScript's formatter for the woven functions only. */
function formatting(ts: Compiler, fileName: string, text: string): Edit[] {
  const source = parsed(ts, fileName, text);
  const service = ts.createLanguageService({
    getScriptFileNames: () => [fileName],
    getScriptVersion: () => "1",
    getScriptSnapshot: () => ts.ScriptSnapshot.fromString(text),
    getCurrentDirectory: () => "/",
    getCompilationSettings: () => ({ noLib: true, noResolve: true, allowJs: true }),
    getDefaultLibFileName: () => "",
    fileExists: (path) => path === fileName,
    readFile: (path) => (path === fileName ? text : undefined),
  });
  const settings: TS.FormatCodeSettings = {
    ...ts.getDefaultFormatCodeSettings(text.includes("\r\n") ? "\r\n" : "\n"),
    ...indentationOf(text),
  };
  const outermost = wovenBodies(source).filter(
    (body, _, all) => !all.some((other) => other !== body && other.pos <= body.pos && body.end <= other.end),
  );
  return outermost.flatMap((body) =>
    service
      .getFormattingEditsForRange(fileName, body.getStart(source.file), body.end, settings)
      .map(({ span, newText }) => ({ start: span.start, end: span.start + span.length, text: newText })),
  );
}

function indentationOf(
  text: string,
): Pick<TS.FormatCodeSettings, "indentSize" | "tabSize" | "convertTabsToSpaces"> {
  const indents = text.match(/^(?:\t+| {2,})(?=\S)(?!\*)/gm) ?? [];
  const isByTabs = indents.filter((indent) => indent.startsWith("\t")).length > indents.length / 2;
  const size = isByTabs ? 4 : Math.min(4, ...indents.map(({ length }) => length));
  return { indentSize: size, tabSize: size, convertTabsToSpaces: !isByTabs };
}
