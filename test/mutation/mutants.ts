import ts from "typescript";
import { luaMutantsOf } from "./lua-mutants";

/** One small change of a text. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Operators that are easily confused. */
const OTHER_OPERATOR: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [ts.SyntaxKind.AmpersandAmpersandToken, "||"],
  [ts.SyntaxKind.BarBarToken, "&&"],
  [ts.SyntaxKind.QuestionQuestionToken, "&&"],
  [ts.SyntaxKind.QuestionQuestionEqualsToken, "="],
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
  [ts.SyntaxKind.PlusToken, "-"],
  [ts.SyntaxKind.MinusToken, "+"],
  [ts.SyntaxKind.AsteriskToken, "/"],
  [ts.SyntaxKind.SlashToken, "*"],
  [ts.SyntaxKind.PlusEqualsToken, "-="],
  [ts.SyntaxKind.MinusEqualsToken, "+="],
]);

const OTHER_METHOD: ReadonlyMap<string, string> = new Map([
  ["some", "every"],
  ["every", "some"],
  ["find", "findLast"],
  ["findLast", "find"],
  ["min", "max"],
  ["max", "min"],
  ["startsWith", "endsWith"],
  ["endsWith", "startsWith"],
]);

/** Returns the small changes that are possible in the code. */
export function mutantsOf(fileName: string, text: string): Mutant[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const replace = (node: ts.Node, ...replacements: readonly string[]): void => {
    for (const replacement of replacements) {
      mutants.push({ start: node.getStart(file), end: node.end, replacement });
    }
  };

  const mutateCondition = (condition: ts.Expression, ...values: readonly string[]): void => {
    if (condition.kind !== ts.SyntaxKind.TrueKeyword) replace(condition, ...values);
  };

  const mutate = (node: ts.Node): void => {
    if (ts.isBinaryExpression(node)) {
      const other = OTHER_OPERATOR.get(node.operatorToken.kind);
      if (other !== undefined) replace(node.operatorToken, other);
    } else if (ts.isPrefixUnaryExpression(node)) {
      if (node.operator === ts.SyntaxKind.ExclamationToken) replace(node, node.operand.getText(file));
    } else if (node.kind === ts.SyntaxKind.TrueKeyword) {
      replace(node, "false");
    } else if (node.kind === ts.SyntaxKind.FalseKeyword) {
      replace(node, "true");
    } else if (ts.isConditionalExpression(node)) {
      mutateCondition(node.condition, "true", "false");
    } else if (ts.isIfStatement(node)) {
      mutateCondition(node.expression, "true", "false");
    } else if (ts.isWhileStatement(node) || ts.isDoStatement(node)) {
      mutateCondition(node.expression, "false");
    } else if (ts.isForStatement(node) && node.condition !== undefined) {
      mutateCondition(node.condition, "false");
    } else if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const other = OTHER_METHOD.get(node.expression.name.text);
      if (other !== undefined) replace(node.expression.name, other);
    } else if (ts.isNumericLiteral(node)) {
      replace(node, String(Number(node.text) + 1));
    } else if (ts.isExpressionStatement(node) && !isDirective(node) && !isSuperCall(node)) {
      replace(node, ";");
    } else if (isText(node) && !isNameOrSource(node)) {
      if (isLua(node, fileName)) mutants.push(...luaMutantsOf(text, node.getStart(file), node.end));
      else if (node.getText(file).length > 2) replace(node, '""');
    }
  };

  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    mutate(node);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return mutants;
}

type Text = ts.StringLiteralLike | ts.TemplateExpression;

function isText(node: ts.Node): node is Text {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

function isNameOrSource(text: Text): boolean {
  const { parent } = text;
  return (
    (ts.isPropertyAssignment(parent) && parent.name === text) ||
    ts.isExternalModuleReference(parent) ||
    ts.isExpressionStatement(parent)
  );
}

/** The text of a script for Redis. */
export function isLua(node: ts.Node, fileName: string): boolean {
  const isTemplate = ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node);
  return isTemplate && fileName.includes("redis/scripts/") && node.getText().includes("\n");
}

function isDirective({ expression }: ts.ExpressionStatement): boolean {
  return ts.isStringLiteral(expression);
}

function isSuperCall({ expression }: ts.ExpressionStatement): boolean {
  return ts.isCallExpression(expression) && expression.expression.kind === ts.SyntaxKind.SuperKeyword;
}
