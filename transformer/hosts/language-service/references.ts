import type * as TS from "typescript";
import { ATTRIBUTES, isAttribute } from "../../../runtime/attributes/tag-attributes";
import { codeIn } from "../../read/names-in-tags";
import type { AnyFunction } from "../../read/syntax";
import type { Item, Tag, Word } from "../../read/tag";
import type { Span } from "../../text/span";
import { parametersOf, present, stepInto, stepsOf, typeOfPath, typeOfThis } from "./paths";
import { inScope, resolved } from "./scope";
import { editableTagsIn } from "./tag-at";

/** A name in a tag, with the symbol that it refers to. */
export interface Reference extends Span {
  readonly symbol: TS.Symbol;
}

/** The position of a declared name. */
export interface DeclaredName extends Span {
  readonly fileName: string;
}

/** Returns all references in the tags of the file. */
export function referencesIn(ts: typeof TS, program: TS.Program, file: TS.SourceFile): Reference[] {
  if (program.isSourceFileFromExternalLibrary(file)) return [];
  const checker = program.getTypeChecker();
  return editableTagsIn({ ts, file }).flatMap(({ tag, fn }) => {
    if (fn === undefined) return [];
    return tag.attributes.flatMap(({ name, items }) =>
      items.flatMap((item) => inValue(ts, checker, fn, tag, name.text, item)),
    );
  });
}

/** Returns the reference at the offset. */
export function referenceAt(
  ts: typeof TS,
  program: TS.Program,
  fileName: string,
  offset: number,
): Reference | undefined {
  const file = program.getSourceFile(fileName);
  const all = file === undefined ? [] : referencesIn(ts, program, file);
  return all.find(({ start, end }) => start <= offset && offset <= end);
}

/** Returns where the referenced name is declared. */
export function declaredNames(ts: typeof TS, { symbol }: Reference): DeclaredName[] {
  return (symbol.declarations ?? []).map((declaration) => {
    const name = ts.getNameOfDeclaration(declaration) ?? declaration;
    return { fileName: declaration.getSourceFile().fileName, start: name.getStart(), end: name.end };
  });
}

function inValue(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  tag: Tag,
  attribute: string,
  item: Item,
): Reference[] {
  if (!isAttribute(attribute)) return [];
  const row = ATTRIBUTES[attribute];
  switch (row.kind) {
    case "values":
    case "expression":
    case "path":
    case "template":
    case "time":
    case "count":
      return codeIn({ ts, file: fn.getSourceFile() }, attribute, item).flatMap((code) =>
        inExpression(ts, checker, fn, code),
      );
    case "fields":
      return inField(ts, checker, fn, tag, item);
    case "type":
      return inName(ts, checker, fn, item, ts.SymbolFlags.Type);
    case "choice":
      return "orClass" in row ? inName(ts, checker, fn, item, ts.SymbolFlags.Value) : [];
    default:
      return [];
  }
}

/** Returns the references in a path or in another expression. */
function inExpression(ts: typeof TS, checker: TS.TypeChecker, fn: AnyFunction, item: Word): Reference[] {
  const opening = "[";
  const key = ts.createSourceFile("key.ts", `${opening}${item.text}]`, ts.ScriptTarget.Latest);
  const references: Reference[] = [];
  const refer = (name: TS.Node, symbol: TS.Symbol | undefined): void => {
    const start = item.start + name.getStart(key) - opening.length;
    if (symbol !== undefined) references.push({ start, end: start + name.getWidth(key), symbol });
  };
  /** Collects the references in a node. Returns its type, if that is known. */
  const visit = (node: TS.Node): TS.Type | undefined => {
    if (ts.isFunctionLike(node)) return undefined; // A function inside an expression has its own scope.
    if (node.kind === ts.SyntaxKind.ThisKeyword) return typeOfThis(checker, fn);
    if (ts.isIdentifier(node)) {
      const symbol = named(ts, checker, fn, node.text, ts.SymbolFlags.Value);
      refer(node, symbol);
      return symbol && present(checker, checker.getTypeOfSymbolAtLocation(symbol, fn));
    }
    if (ts.isPropertyAccessExpression(node)) {
      const type = visit(node.expression);
      const found = type && stepInto(ts, checker, fn, type, node.name.text);
      refer(node.name, found?.symbol);
      return found?.type;
    }
    if (ts.isElementAccessExpression(node) && ts.isNumericLiteral(node.argumentExpression)) {
      const type = visit(node.expression);
      return type && stepInto(ts, checker, fn, type, `[${node.argumentExpression.text}]`).type;
    }
    if (ts.isNonNullExpression(node) || ts.isParenthesizedExpression(node)) return visit(node.expression);
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name)) return visit(node.initializer);
    ts.forEachChild(node, (child) => void visit(child));
    return undefined;
  };
  visit(key);
  return references;
}

/** Returns the references in a path that starts at the object of `keyName`. */
function inField(ts: typeof TS, checker: TS.TypeChecker, fn: AnyFunction, tag: Tag, item: Item): Reference[] {
  const object = tag.attributes.find(({ name }) => name.text === "keyName")?.items[0].text ?? "";
  let type = typeOfPath(ts, checker, fn, stepsOf(object));
  const references: Reference[] = [];
  for (const { index, 0: step } of item.text.matchAll(/[\p{ID_Continue}$]+|\[\d+\]/gu)) {
    const found = type && stepInto(ts, checker, fn, type, step);
    const start = item.start + index;
    if (found?.symbol !== undefined)
      references.push({ start, end: start + step.length, symbol: found.symbol });
    type = found?.type;
  }
  return references;
}

/** Returns the references in a name such as `OrderBusy` or `errors.OrderBusy`. */
function inName(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  { text, start }: Item,
  meaning: TS.SymbolFlags,
): Reference[] {
  const references: Reference[] = [];
  const isQualified = text.includes(".");
  let symbol: TS.Symbol | undefined;
  for (const { index, 0: name } of text.matchAll(/[\p{ID_Continue}$]+/gu)) {
    symbol =
      index === 0
        ? named(ts, checker, fn, name, isQualified ? ts.SymbolFlags.Namespace : meaning)
        : symbol &&
          checker.getExportsOfModule(resolved(ts, checker, symbol)).find((one) => one.name === name);
    if (symbol === undefined) break;
    references.push({ start: start + index, end: start + index + name.length, symbol });
  }
  return references;
}

/** Finds a parameter, or a name that the file itself declares or imports. */
function named(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  name: string,
  meaning: TS.SymbolFlags,
): TS.Symbol | undefined {
  const parameter = parametersOf(ts, fn).find(({ text }) => text === name);
  const isOfVariables = (meaning & ts.SymbolFlags.Variable) !== 0;
  if (parameter !== undefined && isOfVariables) return checker.getSymbolAtLocation(parameter);
  return inScope(ts, checker, fn, meaning).find((symbol) => symbol.name === name);
}
