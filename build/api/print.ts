import ts from "typescript";
import { isPrivate } from "./entries";

const PRINTER = ts.createPrinter({ removeComments: true });

/** Returns the source text of a node, without comments and private members. */
function textOf(node: ts.Node): string {
  const { transformed } = ts.transform(node, [withoutPrivateMembers]);
  const text = transformed.map((part) =>
    PRINTER.printNode(ts.EmitHint.Unspecified, part, node.getSourceFile()),
  );
  return text.join("").trim();
}

/** Returns a declaration as it reads where it is used, without `export` and `declare`. */
export function declarationText(declaration: ts.Declaration): string {
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  return textOf(node).replace(/^(?:export |declare |default )+/, "");
}

/** Returns the text of a type on one line. */
export function typeText(node: ts.Node): string {
  return textOf(node).replaceAll(/\s+/g, " ");
}

const withoutPrivateMembers: ts.TransformerFactory<ts.Node> = (context) => (root) =>
  ts.isClassDeclaration(root)
    ? context.factory.updateClassDeclaration(
        root,
        root.modifiers,
        root.name,
        root.typeParameters,
        root.heritageClauses,
        root.members.filter((member) => !isPrivate(member)),
      )
    : root;
