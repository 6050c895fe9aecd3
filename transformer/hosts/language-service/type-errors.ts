import type * as TS from "typescript";
import type { Defaults } from "../../read/attributes";
import { compilerErrorsInTags } from "../diagnostics/to-disk";
import type { Compiler } from "../ts-patch/compiler";
import { reportOnDisk } from "../ts-patch/report-on-disk";
import { recreateProgram } from "../ts-patch/weave-program";
import { internals, wovenAlone, type WovenFile, type WovenFiles } from "../ts-patch/woven-files";
import type { OpenProject } from "./project";

/** Returns the type errors in the tags of a file: in keys, fields, and error classes. */
type TypeErrors = (project: OpenProject, fileName: string) => TS.Diagnostic[];

/** A program with the woven files in place of the tagged ones, in their current state in the editor. */
interface WovenState {
  readonly original: TS.Program;
  readonly files: WovenFiles;
  readonly program: TS.Program;
}

/** Creates the type check for one project. Each new program reuses most of the one before. */
export function typeErrors(ts: typeof TS): TypeErrors {
  const compiler = ts as Compiler;
  const checkedFiles = new Set<string>();
  const cache = new WeakMap<TS.SourceFile, WovenFile | undefined>();
  let current: WovenState | undefined;

  const wovenOf = (program: TS.Program, file: TS.SourceFile, defaults: Defaults): WovenFile | undefined => {
    if (!cache.has(file)) cache.set(file, wovenAlone(compiler, program, file, defaults));
    const found = cache.get(file);
    return found === undefined || found.woven.tags.length === 0 ? undefined : found;
  };
  const createState = ({ program, defaults }: OpenProject): WovenState => {
    const files = new Map<string, WovenFile>();
    for (const fileName of checkedFiles) {
      const file = program.getSourceFile(fileName);
      const woven = file && wovenOf(program, file, defaults);
      if (file !== undefined && woven !== undefined) files.set(internals(file).path, woven);
    }
    const before =
      current !== undefined && hasSameFiles(current.original, program) ? current.program : program;
    const host = ts.createCompilerHost(program.getCompilerOptions());
    const woven = recreateProgram(compiler, program, host, files, before);
    reportOnDisk(ts, woven, files, []);
    return { original: program, files, program: woven };
  };

  return (project, fileName) => {
    const { program, defaults, cancellation } = project;
    const file = program.getSourceFile(fileName);
    if (file === undefined || file.isDeclarationFile || program.isSourceFileFromExternalLibrary(file)) {
      return [];
    }
    const woven = wovenOf(program, file, defaults);
    if (woven === undefined) return [];
    checkedFiles.add(fileName);
    if (current?.original !== program || !current.files.has(internals(file).path))
      current = createState(project);
    const found = current.program.getSemanticDiagnostics(
      current.program.getSourceFile(fileName),
      cancellation,
    );
    return compilerErrorsInTags(found, woven.woven.tags, file.text).map((error) =>
      Object.assign(error, { file }),
    );
  };
}

function hasSameFiles(one: TS.Program, other: TS.Program): boolean {
  const [files, others] = [one.getSourceFiles(), other.getSourceFiles()];
  return (
    files.length === others.length && files.every(({ fileName }, at) => fileName === others[at]?.fileName)
  );
}
