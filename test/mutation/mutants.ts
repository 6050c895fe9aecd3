import ts from "typescript";

/** One small change of a text. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Operators that are easily mistaken for one another. */
const OTHER_OPERATOR: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [ts.SyntaxKind.AmpersandAmpersandToken, "||"],
  [ts.SyntaxKind.BarBarToken, "&&"],
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
  [ts.SyntaxKind.PlusToken, "-"],
  [ts.SyntaxKind.MinusToken, "+"],
]);

const OTHER_METHOD: ReadonlyMap<string, string> = new Map([
  ["some", "every"],
  ["every", "some"],
  ["find", "findLast"],
  ["findLast", "find"],
  ["min", "max"],
  ["max", "min"],
]);

/** The small changes that can be made to the code, each alone. */
export function mutantsOf(fileName: string, text: string): Mutant[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const replace = (node: ts.Node, replacement: string): void => {
    mutants.push({ start: node.getStart(file), end: node.end, replacement });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return;
    if (ts.isBinaryExpression(node)) {
      const other = OTHER_OPERATOR.get(node.operatorToken.kind);
      if (other !== undefined) replace(node.operatorToken, other);
    }
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
      replace(node, node.operand.getText(file));
    }
    if (node.kind === ts.SyntaxKind.TrueKeyword) replace(node, "false");
    if (node.kind === ts.SyntaxKind.FalseKeyword) replace(node, "true");
    if (ts.isConditionalExpression(node)) {
      replace(node.condition, "true");
      replace(node.condition, "false");
    }
    if (ts.isIfStatement(node)) {
      replace(node.expression, "true");
      replace(node.expression, "false");
    }
    if (ts.isPropertyAccessExpression(node) && ts.isCallExpression(node.parent)) {
      const other = OTHER_METHOD.get(node.name.text);
      if (other !== undefined && node.parent.expression === node) replace(node.name, other);
    }
    if (ts.isNumericLiteral(node)) replace(node, String(Number(node.text) + 1));
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) replace(node, ";");
    if (ts.isNoSubstitutionTemplateLiteral(node) && /\bredis\.call\(/.test(node.text)) {
      mutants.push(...luaMutantsOf(text, node.getStart(file), node.end));
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return mutants;
}

/** In the text of a Lua script. */
function luaMutantsOf(text: string, start: number, end: number): Mutant[] {
  const others: Readonly<Record<string, string>> = {
    "==": "~=",
    "~=": "==",
    "<=": "<",
    ">=": ">",
    " < ": " <= ",
    " > ": " >= ",
    " + ": " - ",
    " - ": " + ",
    " and ": " or ",
    " or ": " and ",
    "not ": "",
  };
  const script = text.slice(start, end);
  return [...script.matchAll(/==|~=|<=|>=| < | > | \+ | - | and | or |not /g)].map(({ 0: found, index }) => ({
    start: start + index,
    end: start + index + found.length,
    replacement: others[found] ?? found,
  }));
}
