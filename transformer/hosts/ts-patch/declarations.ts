import type * as TS from "typescript";
import { importedModule, RUNTIME } from "../../read/module-syntax";
import { isOwnImport, type WovenFile } from "./woven-files";

/**
 * Removes the import that the weave added from the declarations of a woven file. With that import in scope, the compiler writes
 * `lockweave.HeldLock` instead of `import("lockweave").HeldLock`.
 */
export function withoutRuntime(
  ts: typeof TS,
  declarations: TS.SourceFile,
  file: WovenFile,
  context: TS.TransformationContext,
): TS.SourceFile {
  const statements = declarations.statements.filter((statement) => !isOwnImport(ts, statement, file));
  if (statements.length === declarations.statements.length) return declarations;
  const { factory } = context;
  const module = moduleIn(ts, file.onDisk);

  const importType = (name: TS.EntityName, node: TS.TypeReferenceNode | TS.TypeQueryNode): TS.TypeNode => {
    const argument = factory.createLiteralTypeNode(factory.createStringLiteral(module));
    const { typeArguments } = node;
    const isTypeOf = ts.isTypeQueryNode(node);
    return factory.createImportTypeNode(argument, undefined, withoutFirst(name), typeArguments, isTypeOf);
  };
  const withoutFirst = (name: TS.EntityName): TS.EntityName | undefined => {
    if (ts.isIdentifier(name)) return undefined;
    const left = withoutFirst(name.left);
    return left === undefined ? name.right : factory.createQualifiedName(left, name.right);
  };
  const visit = (node: TS.Node): TS.Node => {
    const inner = ts.visitEachChild(node, visit, context);
    const name = ts.isTypeReferenceNode(inner)
      ? inner.typeName
      : ts.isTypeQueryNode(inner)
        ? inner.exprName
        : undefined;
    if (name === undefined || firstOf(ts, name) !== file.woven.namespace) return inner;
    return importType(name, inner as TS.TypeReferenceNode | TS.TypeQueryNode);
  };
  const rewritten = ts.visitNodes(factory.createNodeArray(statements), visit, ts.isStatement);
  return factory.updateSourceFile(declarations, ts.setTextRange(rewritten, declarations.statements));
}

function firstOf(ts: typeof TS, name: TS.EntityName): string {
  return ts.isIdentifier(name) ? name.text : firstOf(ts, name.left);
}

/** Returns the specifier that the compiler uses for our module: the one by which the file imports it. */
function moduleIn(ts: typeof TS, { statements }: TS.SourceFile): string {
  const modules = statements.map((statement) => importedModule(ts, statement));
  return modules.find((module) => module === MODULE || module === RUNTIME) ?? MODULE;
}

const MODULE = "lockweave";
