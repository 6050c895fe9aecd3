import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { countRegions } from "./regions";
import { CACHE, filesAt, FOLDERS, hashOf, textOf } from "./sources";

/** The whole repository as JavaScript. */
export interface Mirror {
  readonly path: string;
}

export function compile(fileName: string, text: string): string {
  return ts.transpileModule(text, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      isolatedModules: true,
    },
  }).outputText;
}

/** Compiles the repository plainly and with counters for the regions. Compiles only changed files again. */
export function makeMirrors(): { readonly plain: string; readonly counting: string } {
  const plain = join(CACHE, "plain");
  const counting = join(CACHE, "counting");
  const mutated = new Set(filesAt(...FOLDERS));
  for (const file of [...mutated, ...filesAt("test")]) {
    mirror(plain, file, textOf(file));
    mirror(counting, file, mutated.has(file) ? countRegions(file, textOf(file)).text : textOf(file));
  }
  return { plain, counting };
}

function mirror(directory: string, file: string, text: string): void {
  const path = join(directory, file.replace(/\.ts$/, ".js"));
  const mark = `// ${hashOf(text)}`;
  if (existsSync(path) && readFileSync(path, "utf8").endsWith(mark)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${compile(file, text)}${mark}`);
}
