import type * as TS from "typescript";
import { bare } from "./syntax";

/** The decorators of one file, and its calls, by the name that is written there. */
interface Index {
  readonly calls: ReadonlyMap<string, readonly TS.CallExpression[]>;
  /** Those of methods. */
  readonly decorators: readonly TS.Decorator[];
  /** The other names of something, as in `import { a as b }`, `const b = x.a;`, and `const { a: b } = x;`. */
  readonly others: ReadonlyMap<string, readonly string[]>;
}

/** Finds decorators, and calls by their names, before any type is known. It also knows other names that the files give to the same thing. */
export class CalledNames {
  readonly #indexes: readonly Index[];

  constructor(ts: typeof TS, files: readonly TS.SourceFile[]) {
    this.#indexes = files.map((file) => {
      const index = indexes.get(file) ?? indexOf(ts, file);
      indexes.set(file, index);
      return index;
    });
  }

  /** Returns the decorators of methods, whatever their names are. */
  decorators(): TS.Decorator[] {
    return this.#indexes.flatMap(({ decorators }) => decorators);
  }

  calls(name: string): TS.CallExpression[] {
    const names = new Set([name]);
    for (const one of names)
      for (const { others } of this.#indexes) for (const other of others.get(one) ?? []) names.add(other);
    return [...names].flatMap((one) => this.#indexes.flatMap(({ calls }) => calls.get(one) ?? []));
  }
}

/** An editor analyzes after each keystroke, and most files are the same as before. */
const indexes = new WeakMap<TS.SourceFile, Index>();

function indexOf(ts: typeof TS, file: TS.SourceFile): Index {
  const calls = new Map<string, TS.CallExpression[]>();
  const decorators: TS.Decorator[] = [];
  const others = new Map<string, string[]>();
  const add = <Value>(
    map: Map<string, Value[]>,
    name: string | undefined,
    value: Value | undefined,
  ): void => {
    if (name === undefined || value === undefined) return;
    const all = map.get(name);
    if (all === undefined) map.set(name, [value]);
    else all.push(value);
  };
  const visit = (node: TS.Node): void => {
    if (ts.isCallExpression(node)) add(calls, lastName(ts, node.expression), node);
    else if (ts.isDecorator(node) && ts.isMethodDeclaration(node.parent)) decorators.push(node);
    else if (ts.isImportSpecifier(node) || ts.isExportSpecifier(node))
      add(others, node.propertyName?.text, node.name.text);
    else if (ts.isBindingElement(node) && ts.isIdentifier(node.name) && node.propertyName !== undefined)
      add(others, textOf(ts, node.propertyName), node.name.text);
    else if (
      ts.isVariableDeclaration(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isPropertyAssignment(node)
    ) {
      if (node.initializer !== undefined) add(others, lastName(ts, node.initializer), textOf(ts, node.name));
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { calls, decorators, others };
}

/** Returns the name of a variable, or the last one of a path. A function that is bound has the name of the original one. */
function lastName(ts: typeof TS, expression: TS.Expression): string | undefined {
  const value = bare(ts, expression);
  if (ts.isIdentifier(value)) return value.text;
  if (ts.isElementAccessExpression(value)) return textOf(ts, value.argumentExpression);
  if (ts.isPropertyAccessExpression(value)) return value.name.text;
  if (!ts.isCallExpression(value) || !ts.isPropertyAccessExpression(value.expression)) return undefined;
  const { name, expression: bound } = value.expression;
  return name.text === "bind" ? lastName(ts, bound) : undefined;
}

function textOf(ts: typeof TS, name: TS.Node): string | undefined {
  return ts.isMemberName(name) || ts.isStringLiteralLike(name) ? name.text : undefined;
}
