import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import type { ProjectWithPaths } from "../../verify/by-paths";
import { allSpecifiersIn } from "../../verify/files-behind";
import type { ConfigFile } from "./config";
import type { NativeProject } from "./project";

/** Returns the project with functions that resolve its imports, if it has tags. The compiler has no API for that. */
export function withPaths(
  ts: Parser,
  { config, configs, sources, woven }: NativeProject,
): ProjectWithPaths | undefined {
  const patterns = patternsIn(configs);
  if (woven.size === 0) return undefined;
  const files = new Map(
    sources
      .filter((file) => /(?<!\.d)\.[cm]?[jt]sx?$/.test(file))
      .map((file) => [file, parsed(ts, file)] as const),
  );
  const specifiers = new Map(Array.from(files.values(), (file) => [file, allSpecifiersIn(ts, file)]));
  const rootDir = pathIn(configs, "rootDir") ?? dirname(config);
  const outDir = pathIn(configs, "outDir");
  return {
    files,
    specifiersIn: (file) => specifiers.get(file) ?? [],
    resolve({ text }, { fileName }) {
      const targets = text.startsWith(".") ? [resolve(dirname(fileName), text)] : targetsOf(text, patterns);
      return targets.flatMap((target) => spellings(target)).find((path) => files.has(path));
    },
    outputOf: (fileName) => (outDir === undefined ? fileName : join(outDir, relative(rootDir, fileName))),
  };
}

function parsed(ts: Parser, file: string): TS.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
}

/** An entry of `paths` with absolute targets. */
interface Pattern {
  readonly before: string;
  /** `undefined` if the name has no `*`. */
  readonly after: string | undefined;
  readonly targets: readonly string[];
}

/** Returns the patterns in TypeScript's order of preference: names without `*` first, then those with the longest prefix. */
function patternsIn(configs: readonly ConfigFile[]): Pattern[] {
  const holder = configs.find(({ settings }) => "paths" in settings);
  if (holder === undefined) return [];
  const base = dirname(holder.path);
  const all = Object.entries((holder.settings["paths"] ?? {}) as Readonly<Record<string, readonly string[]>>);
  return all
    .map(([name, targets]): Pattern => {
      const [before = "", after] = name.split("*");
      return { before, after, targets: [targets].flat().map((target) => resolve(base, target)) };
    })
    .toSorted(
      (one, other) =>
        Number(one.after !== undefined) - Number(other.after !== undefined) ||
        other.before.length - one.before.length,
    );
}

function targetsOf(specifier: string, patterns: readonly Pattern[]): string[] {
  for (const { before, after, targets } of patterns) {
    if (after === undefined) {
      if (specifier === before) return [...targets];
    } else if (
      specifier.length >= before.length + after.length &&
      specifier.startsWith(before) &&
      specifier.endsWith(after)
    ) {
      const star = specifier.slice(before.length, specifier.length - after.length);
      return targets.map((target) => target.replace("*", () => star));
    }
  }
  return [];
}

const ENDINGS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];

/** Returns the files that an import of this path may resolve to. */
function spellings(path: string): string[] {
  const asTypeScript = path.replace(/\.([cm]?)js(x?)$/, ".$1ts$2");
  return [
    asTypeScript,
    asTypeScript.replace(/\.ts$/, ".tsx"),
    path,
    ...ENDINGS.map((ending) => path + ending),
    ...ENDINGS.map((ending) => join(path, `index${ending}`)),
  ];
}

/** Returns a path setting of the first tsconfig.json in the `extends` chain that has it. */
function pathIn(configs: readonly ConfigFile[], name: string): string | undefined {
  const holder = configs.find(({ settings }) => name in settings);
  const path = holder?.settings[name];
  return holder === undefined || typeof path !== "string" ? undefined : resolve(dirname(holder.path), path);
}
