import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Project, TaggedFile } from "../verify/project";
import { taggedFile } from "../verify/tagged-file";
import { weave } from "../weave/weave";

// Opens a directory without a tsconfig.json, which is common in projects with Vite, tsx, or plain Node.

/** Returns all sources in the directory and below, except for installed, built, and hidden files. */
export function sourcesUnder(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return NO_SOURCES.test(entry.name) ? [] : sourcesUnder(path);
    return entry.isFile() && SOURCE.test(entry.name) ? [path] : [];
  });
}

const NO_SOURCES = /^(?:\..*|node_modules|dist|build|out|coverage)$/;
const SOURCE = /(?<!\.d|\.min)\.[cm]?[jt]sx?$/;

/** The options that match most bundlers and Node. Nothing is ever written. */
export function usualOptions(ts: typeof TS): TS.CompilerOptions {
  return {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    moduleDetection: ts.ModuleDetectionKind.Force,
    jsx: ts.JsxEmit.Preserve,
    allowImportingTsExtensions: true,
    allowJs: true,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
  };
}

/** Returns what can be known about the sources without a compiler. */
export function uncheckedProject(ts: Parser, config: string, sources: readonly string[]): Project {
  const outputs = new Map<string, ReadonlyMap<string, string>>();
  const files = sources.flatMap((path): TaggedFile[] => {
    const text = readFileSync(path, "utf8");
    const woven = weave(path, text, { ts, module: "esm" });
    if (woven === undefined) return [];
    // A JavaScript file is its own output. A file with types is not.
    if (path.endsWith("js")) outputs.set(path, new Map([[path, woven.code]]));
    return taggedFile(ts.createSourceFile(path, text, ts.ScriptTarget.Latest), woven);
  });
  return {
    ts,
    config,
    builder: "another",
    checksTypes: false,
    options: {},
    plugin: undefined,
    files,
    sources: [config, ...sources],
    problems: [],
    unlocked: () => [],
    unlockedSources: () => [],
    linked: () => [],
    typeProblems: () => [],
    analysis: () => undefined,
    wovenSources: () => undefined,
    errorsWith: () => [],
    emitWoven: ({ source }) => outputs.get(source.fileName) ?? new Map<string, string>(),
  };
}
