import type * as TS from "typescript";
import type { Defaults } from "../../read/attributes";
import { NEED_NAME, TAG_NAME } from "../../read/spelling";
import { problem } from "../../text/problems";
import { emitsCode } from "./dependencies";
import { diagnosticOf } from "../diagnostics/own-problems";
import { wovenFiles, type WovenFile } from "./woven-files";
import type { Compiler } from "./compiler";

/**
 * Makes a program that was not woven throw before it emits a file with a tag, because its code would run without its locks and checks. Declarations
 * contain no code, so they are emitted.
 */
export function refuseToEmit(
  ts: Compiler,
  program: TS.Program,
  defaults: Defaults,
  caller: string | undefined,
): void {
  const { emit } = program;
  program.emit = (target, writeFile, cancellationToken, onlyDeclarations, ...rest) => {
    // TypeScript itself also passes numbers here, where 0 means "only JavaScript".
    const isForCode = emitsCode(program.getCompilerOptions()) && !onlyDeclarations;
    const unlocked = isForCode ? taggedFiles(ts, program, defaults, target) : [];
    if (unlocked.length > 0) throw new Error(refusal(ts, program, unlocked, caller));
    return emit(target, writeFile, cancellationToken, onlyDeclarations, ...rest);
  };
}

function taggedFiles(
  ts: Compiler,
  program: TS.Program,
  defaults: Defaults,
  target: TS.SourceFile | undefined,
): WovenFile[] {
  return [...wovenFiles(ts, program, defaults).values()].filter(
    ({ woven, onDisk }) =>
      (target === undefined || target.fileName === onDisk.fileName) &&
      woven.sites.length + woven.needs.length + woven.diagnostics.length > 0,
  );
}

function refusal(
  ts: Compiler,
  program: TS.Program,
  files: readonly WovenFile[],
  caller = "the program that called TypeScript",
): string {
  const refused = files.flatMap(({ woven: { sites, needs, diagnostics }, onDisk }) => [
    ...sites.map(({ name, start, end }) =>
      diagnosticOf(ts, problem("emittedUnlocked", { start, end }, name, `@${TAG_NAME}`, caller), onDisk),
    ),
    ...needs.map(({ site, at }) =>
      diagnosticOf(ts, problem("emittedUnlocked", at, site, `@${NEED_NAME}`, caller), onDisk),
    ),
    ...diagnostics.map((found) => diagnosticOf(ts, found, onDisk)),
  ]);
  const text = ts.formatDiagnostics(refused, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => program.getCurrentDirectory(),
    getNewLine: () => "\n",
  });
  return text.trimEnd();
}
