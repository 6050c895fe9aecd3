import { readFileSync } from "node:fs";
import { basename, dirname, relative } from "node:path";
import type { Parser } from "../../parser/parser";
import { mayHaveTags } from "../../read/spelling";
import { problem, type Problem } from "../../text/problems";
import { unlockedByDeclarations } from "../../verify/declared";
import { namesOf } from "../../verify/source-import";
import { unlockedByLinks, unlockedByPaths } from "../../verify/unlocked-imports";
import type { PlacedProblem } from "../../verify/project";
import { compiledFiles } from "./compiled-files";
import type { NativeProject } from "./project";

/** Reports dependencies that were built without the weave. Referenced projects report their own. */
export function unlockedDependencies(ts: Parser, { declarations, configs }: NativeProject): Problem[] {
  const references = (configs[0]?.references ?? []).map((config) => dirname(config));
  return declarations.flatMap((fileName) => {
    if (references.some((dir) => !relative(dir, fileName).startsWith(".."))) return [];
    const text = readFileSync(fileName, "utf8");
    if (!mayHaveTags(text) && !text.includes("sourceMappingURL=")) return [];
    const unlocked = unlockedByDeclarations({
      ts,
      file: ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest),
    });
    if (unlocked === undefined) return [];
    const { tags, javaScript } = unlocked;
    return [problem("unlockedDependency", { start: 0, end: 0 }, namesOf(tags), basename(javaScript))];
  });
}

/**
 * Reports imports from packages that Node loads without locks: through `paths`, as in {@link unlockedByPaths}, or through a link to
 * sources, as in {@link unlockedByLinks}.
 */
export function unlockedImports(
  ts: Parser,
  project: NativeProject,
): { readonly byPaths: PlacedProblem[]; readonly byLinks: PlacedProblem[] } {
  const { noEmit, emitDeclarationOnly } = project.options;
  const isEmitted = noEmit !== true && emitDeclarationOnly !== true;
  const imports = isEmitted ? compiledFiles(ts, project) : undefined;
  if (imports === undefined) return { byPaths: [], byLinks: [] };
  return { byPaths: unlockedByPaths(ts, imports), byLinks: unlockedByLinks(ts, imports) };
}
