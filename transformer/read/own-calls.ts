import type * as TS from "typescript";
import { importedModule } from "./imports";

const MODULES = new Set(["lockweave", "lockweave/runtime"]);

/** Cheap, and never misses a call: most files have none. */
export function mayConfigure(text: string): boolean {
  return text.includes("configure") && /["']lockweave(?:\/runtime)?["']/.test(text);
}

/** The calls of one of our functions in `node`, told by the names under which the file imports it. */
export function callsOf(
  ts: typeof TS,
  file: TS.SourceFile,
  functionName: string,
  node: TS.Node,
  isElsewhere: (node: TS.Node) => boolean = () => false,
): TS.CallExpression[] {
  const isOurs = recogniser(ts, file, functionName);
  if (isOurs === undefined) return [];
  const calls: TS.CallExpression[] = [];
  const visit = (child: TS.Node): void => {
    if (isElsewhere(child)) return;
    if (ts.isCallExpression(child) && isOurs(child.expression)) calls.push(child);
    ts.forEachChild(child, visit);
  };
  visit(node);
  return calls;
}

function recogniser(
  ts: typeof TS,
  file: TS.SourceFile,
  functionName: string,
): ((callee: TS.Expression) => boolean) | undefined {
  const functions = new Set<string>();
  const namespaces = new Set<string>();
  for (const statement of file.statements) {
    if (!MODULES.has(importedModule(ts, statement) ?? "")) continue;
    if (ts.isImportEqualsDeclaration(statement)) namespaces.add(statement.name.text);
    if (!ts.isImportDeclaration(statement)) continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings === undefined) continue;
    if (ts.isNamespaceImport(bindings)) namespaces.add(bindings.name.text);
    else {
      for (const { name, propertyName = name } of bindings.elements) {
        if (propertyName.text === functionName) functions.add(name.text);
      }
    }
  }
  if (functions.size + namespaces.size === 0) return undefined;
  return (callee) =>
    ts.isIdentifier(callee)
      ? functions.has(callee.text)
      : ts.isPropertyAccessExpression(callee) &&
        callee.name.text === functionName &&
        ts.isIdentifier(callee.expression) &&
        namespaces.has(callee.expression.text);
}
