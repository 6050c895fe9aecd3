import type * as TS from "typescript";
import { isOfTag } from "../../weave/weave";
import type { Compiler } from "../ts-patch/compiler";
import { reportOnDisk } from "../ts-patch/report-on-disk";
import { createAgain } from "../ts-patch/weave-program";
import { internals, wovenAlone } from "../ts-patch/woven-files";
import type { OpenProject } from "./project";

/**
 * What the type checker says of the words of the file's tags: of keys, fields and error classes. It looks at the woven
 * file among all the others as they are in the editor.
 */
export function typeErrorsOf(
  ts: typeof TS,
  { program, defaults, cancellation }: OpenProject,
  fileName: string,
): TS.Diagnostic[] {
  const file = program.getSourceFile(fileName);
  if (file === undefined || file.isDeclarationFile || program.isSourceFileFromExternalLibrary(file))
    return [];
  const compiler = ts as Compiler;
  const alone = wovenAlone(compiler, program, file, defaults);
  if (alone === undefined || alone.woven.sites.length === 0) return [];
  const files = new Map([[internals(file).path, alone]]);
  const woven = createAgain(compiler, program, ts.createCompilerHost(program.getCompilerOptions()), files);
  reportOnDisk(ts, woven, files, []);
  return woven
    .getSemanticDiagnostics(woven.getSourceFile(fileName), cancellation)
    .filter(({ source, start }) => source !== "lockweave" && start !== undefined)
    .filter(({ start = 0 }) => isOfTag(alone.woven.sites, file.text, start))
    .map((found) => ({ ...found, file }));
}
