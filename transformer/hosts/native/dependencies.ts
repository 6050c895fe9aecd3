import { readFileSync } from "node:fs";
import { basename, dirname, relative } from "node:path";
import type { Parser } from "../../parser/parser";
import { mayHaveTags } from "../../read/spelling";
import { problem, type Problem } from "../../text/problems";
import { unlockedIn } from "../../verify/declared";
import { unlockedByPaths } from "../../verify/by-paths";
import type { PlacedProblem } from "../../verify/project";
import { withPaths } from "./by-paths";
import type { NativeProject } from "./project";

/** What the project takes in that was built without the weave; what its references make is theirs to tell. */
export function unlockedDependencies(ts: Parser, { declarations, configs }: NativeProject): Problem[] {
  const references = (configs[0]?.references ?? []).map((config) => dirname(config));
  return declarations.flatMap((fileName) => {
    if (references.some((dir) => !relative(dir, fileName).startsWith(".."))) return [];
    const text = readFileSync(fileName, "utf8");
    if (!mayHaveTags(text) && !text.includes("\n//# sourceMappingURL=")) return [];
    const unlocked = unlockedIn(ts, ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest));
    if (unlocked === undefined) return [];
    const names = unlocked.tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
    return [problem("unlockedDependency", { start: 0, end: 0 }, names, basename(unlocked.javaScript))];
  });
}

/** What the project takes in by `paths`, if Node loads the package of that name without its locks: see {@link unlockedByPaths}. */
export function unlockedIfPaths(ts: Parser, project: NativeProject): PlacedProblem[] {
  const { noEmit, emitDeclarationOnly } = project.options;
  if (noEmit === true || emitDeclarationOnly === true) return [];
  const paths = withPaths(ts, project);
  return paths === undefined ? [] : unlockedByPaths(ts, paths);
}
