import MagicString from "magic-string";
import ts from "typescript";
import { isLua } from "./mutants";

/** A part of a file that runs as a whole or not at all, unless it throws. */
export interface Region {
  readonly start: number;
  readonly end: number;
}

export interface CountedText {
  /** The first region is the file itself, which runs when it is loaded. */
  readonly regions: readonly Region[];
  /** The text that reports each region when it runs, as `<file>#<index>`. */
  readonly text: string;
}

/** Counts statements, and the parts of expressions that run conditionally. */
export function countRegions(fileName: string, text: string): CountedText {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const counted = new MagicString(text);
  const regions: Region[] = [];
  const begin = (node: ts.Node): string => {
    const region = { start: node.getStart(file), end: node.end };
    return `"${fileName}#${regions.push(region) - 1}"`;
  };

  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node)) return;
    if (isLua(node, fileName)) {
      counted.appendRight(node.getStart(file), `lockweaveText(${begin(node)}, `);
      counted.appendLeft(node.end, ")");
    } else if (isScript(node)) {
      counted.appendRight(node.getStart(file), "lockweaveScript(");
      ts.forEachChild(node, visit);
      const texts = node.arguments.map((argument) => argument.getText(file));
      counted.appendLeft(node.end, `, [${texts.join(", ")}])`);
    } else if (isStatementOfItsOwn(node)) {
      const mayStandAlone = ts.isBlock(node.parent) || ts.isCaseOrDefaultClause(node.parent);
      counted.appendRight(
        node.getStart(file),
        `${mayStandAlone ? "" : "{ "}lockweaveReached(${begin(node)}); `,
      );
      ts.forEachChild(node, visit);
      if (!mayStandAlone) counted.appendLeft(node.end, " }");
    } else if (isConditional(node)) {
      counted.appendRight(node.getStart(file), `(lockweaveReached(${begin(node)}), `);
      ts.forEachChild(node, visit);
      counted.appendLeft(node.end, ")");
    } else {
      ts.forEachChild(node, visit);
    }
  };
  const whole = begin(file);
  visit(file);
  counted.append(`\nlockweaveReached(${whole});\n`);
  return { regions, text: counted.toString() };
}

/** The smallest region around this part of the file. */
export function regionAround(regions: readonly Region[], { start, end }: Region): number {
  let smallest = 0;
  regions.forEach((region, index) => {
    const size = region.end - region.start;
    const of = regions[smallest];
    if (region.start > start || region.end < end || of === undefined) return;
    if (size < of.end - of.start) smallest = index;
  });
  return smallest;
}

/** Whether the node makes a Redis script from the texts in its arguments. */
function isScript(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && node.expression.getText() === "script";
}

function isStatementOfItsOwn(node: ts.Node): boolean {
  if (!ts.isStatement(node) || ts.isBlock(node) || ts.isFunctionDeclaration(node)) return false;
  const { parent } = node;
  if (ts.isBlock(parent) || ts.isCaseOrDefaultClause(parent) || ts.isIfStatement(parent)) return true;
  return ts.isIterationStatement(parent, false);
}

function isConditional(node: ts.Node): boolean {
  if (!ts.isExpression(node) || takesItsName(node)) return false;
  const { parent } = node;
  if (ts.isConditionalExpression(parent)) return node !== parent.condition;
  if (ts.isArrowFunction(parent)) return node === parent.body;
  if (ts.isBinaryExpression(parent)) return node === parent.right && isShortCut(parent.operatorToken.kind);
  return (ts.isPropertyDeclaration(parent) || ts.isParameter(parent)) && node === parent.initializer;
}

/** Whether the node takes its name from its context. Wrapped, it would have another name. */
function takesItsName(node: ts.Node): boolean {
  return ts.isArrowFunction(node) || ts.isFunctionExpression(node) || ts.isClassExpression(node);
}

function isShortCut(operator: ts.SyntaxKind): boolean {
  return (
    operator === ts.SyntaxKind.AmpersandAmpersandToken ||
    operator === ts.SyntaxKind.BarBarToken ||
    operator === ts.SyntaxKind.QuestionQuestionToken
  );
}
