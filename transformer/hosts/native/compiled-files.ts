import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import type { CompiledFiles } from "../../resolve/compiled-files";
import { filesByPaths, patternsIn } from "../../resolve/paths";
import { allSpecifiersIn } from "../../resolve/specifiers";
import type { ConfigFile } from "./config";
import type { NativeProject } from "./project";

/** Returns the project with functions that resolve its imports, if it has tags. The compiler has no API for that. */
export function compiledFiles(
  ts: Parser,
  { config, configs, sources, woven }: NativeProject,
): CompiledFiles | undefined {
  const holder = configs.find(({ settings }) => "paths" in settings);
  const patterns = holder === undefined ? [] : patternsIn(holder.settings["paths"], dirname(holder.path));
  if (woven.size === 0) return undefined;
  const files = new Map(
    sources
      .filter((file) => /(?<!\.d)\.[cm]?[jt]sx?$/.test(file))
      .map((file) => [file, parsed(ts, file)] as const),
  );
  const specifiers = new Map(Array.from(files.values(), (file) => [file, allSpecifiersIn({ ts, file })]));
  const rootDir = pathIn(configs, "rootDir") ?? dirname(config);
  const outDir = pathIn(configs, "outDir");
  return {
    files,
    specifiersIn: (file) => specifiers.get(file) ?? [],
    resolve({ text }, { fileName }) {
      return filesByPaths(text, fileName, patterns).find((path) => files.has(path));
    },
    outputOf: (fileName) => (outDir === undefined ? fileName : join(outDir, relative(rootDir, fileName))),
  };
}

function parsed(ts: Parser, file: string): TS.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
}

/** Returns a path setting of the first tsconfig.json in the `extends` chain that has it. */
function pathIn(configs: readonly ConfigFile[], name: string): string | undefined {
  const holder = configs.find(({ settings }) => name in settings);
  const path = holder?.settings[name];
  return holder === undefined || typeof path !== "string" ? undefined : resolve(dirname(holder.path), path);
}
