import type * as TS from "typescript";
import type { PlacedProblem } from "../../verify/project";
import { lostTags } from "../bundlers/lost-tags";
import { ownSources } from "./imports";
import { internals, ON_DISK } from "./woven-files";

/**
 * Returns the tags on disk that another plugin of the program removed from the text that it passes to the compiler. Without another plugin,
 * a compiler reads the files themselves.
 */
export function tagsLostByOthers(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  if (!hasOtherPlugins(program.getCompilerOptions())) return [];
  return ownSources(program).flatMap((source) => {
    const { fileName, text } = source;
    const { onDisk, problems } = lostTags(fileName, text);
    if (problems.length === 0) return [];
    const { path } = internals(source);
    const resolvedPath = `${internals(source).resolvedPath}${ON_DISK}`;
    const file = Object.assign(ts.createSourceFile(fileName, onDisk, ts.ScriptTarget.Latest), {
      path,
      resolvedPath,
    });
    return problems.map((problem) => ({ file, problem }));
  });
}

/** Whether there is a program transformer besides ours. */
function hasOtherPlugins({ plugins }: TS.CompilerOptions): boolean {
  const transformers = Array.isArray(plugins) ? (plugins as { readonly transformProgram?: boolean }[]) : [];
  return transformers.filter(({ transformProgram }) => transformProgram === true).length > 1;
}
