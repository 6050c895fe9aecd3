import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Project, TaggedFile } from "../verify/project";
import { weave } from "../weave/weave";

// A directory without a tsconfig.json, as projects of Vite, tsx and plain Node have it.

/** All sources in it and below, but for what is installed, built or hidden. */
export function sourcesUnder(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) return NO_SOURCES.test(entry.name) ? [] : sourcesUnder(path);
    return entry.isFile() && SOURCE.test(entry.name) ? [path] : [];
  });
}

const NO_SOURCES = /^(?:\..*|node_modules|dist|build|out|coverage)$/;
const SOURCE = /(?<!\.d|\.min)\.[cm]?[jt]sx?$/;

/** What bundlers and Node make of a file, whatever they are. Nothing is ever written. */
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

/** Of the sources, what can be told without a compiler. */
export function uncheckedProject(ts: Parser, config: string, sources: readonly string[]): Project {
  const outputs = new Map<string, ReadonlyMap<string, string>>();
  const files = sources.flatMap((path): TaggedFile[] => {
    const text = readFileSync(path, "utf8");
    const woven = weave(path, text, { ts, module: "esm" });
    if (woven === undefined || woven.sites.length + woven.diagnostics.length + woven.warnings.length === 0)
      return [];
    // With types in it, it is no output.
    if (path.endsWith("js")) outputs.set(path, new Map([[path, woven.code]]));
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
    return [{ source, sites: woven.sites, problems: woven.diagnostics, warnings: woven.warnings }];
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
