import { parser } from "../../parser/parser";
import { namesInTag, parsedTagsIn } from "../../read/names-in-tags";

/** A node of the linter's syntax tree. */
interface LintNode {
  readonly type: string;
  readonly range?: readonly [start: number, end: number];
  readonly parent?: LintNode | null;
}

interface LintScope {
  readonly set: ReadonlyMap<string, { readonly defs: readonly { readonly type: string }[] }>;
}

/** The parts of a rule's context that the rule uses. ESLint 9 and later and oxlint provide them. */
export interface RuleContext {
  readonly filename: string;
  readonly sourceCode: {
    readonly text: string;
    getNodeByRangeIndex(index: number): LintNode | null;
    getScope(node: LintNode): LintScope;
    markVariableAsUsed(name: string, from: LintNode): boolean;
  };
}

/** Marks every name that a tag uses, so that `no-unused-vars` does not report it. */
export function markNamesInTags({ filename, sourceCode }: RuleContext): void {
  const ts = parser();
  const file = ts.createSourceFile(filename, sourceCode.text, ts.ScriptTarget.Latest);
  const source = { ts, file };
  for (const { tag, found } of parsedTagsIn(source)) {
    const body = found?.fn.body;
    if (body === undefined) continue;
    const fn = functionAround(body.getStart(file), sourceCode);
    if (fn === undefined) continue;
    const own = sourceCode.getScope(fn);
    for (const name of namesInTag(source, tag)) {
      const isParameter = own.set.get(name)?.defs.some(({ type }) => type === "Parameter") === true;
      // A tag cannot refer to a variable of the body with the same name.
      sourceCode.markVariableAsUsed(name, isParameter ? fn : (fn.parent ?? fn));
    }
  }
}

/** Returns the innermost function that starts before this offset, which is the start of its body. */
function functionAround(bodyStart: number, sourceCode: RuleContext["sourceCode"]): LintNode | undefined {
  let node = sourceCode.getNodeByRangeIndex(bodyStart);
  while (node && !(/Function/.test(node.type) && (node.range?.[0] ?? bodyStart) < bodyStart))
    node = node.parent ?? null;
  return node ?? undefined;
}
