import { existsSync, readFileSync } from "node:fs";
import module from "node:module";
import type { SourceFile } from "typescript";
import { parser } from "../../parser/parser";
import { importedModule } from "../../read/module-syntax";
import { problem } from "../../text/problems";
import { isInstalled } from "../../resolve/installed";
import { loadedFile } from "../../resolve/loaded-file";
import { fileError } from "../one-file/file-error";
import { formatOf, type Format } from "./compilers/format";
import { isScript, shownPath, weaveFile } from "./tagged-file";

// `require()` can load an ES module. In Node 20, no hook sees what that module imports.

/** Whether Node runs no hooks for the imports of an ES module that `require()` loads. */
export const importsAreUnseen =
  !("registerHooks" in module) && (process.features as { require_module?: boolean }).require_module === true;

/** Modules that run as they should: they and their imports need no weave, or they are in Node's cache with their locks. */
const harmless = new Set<string>();

/**
 * Rejects a module if it imports a file that needs a weave, because that file would run without its locks.
 *
 * @param format the format that Node or another hook reports
 * @param compile compiles and runs the module
 * @throws an error with the code of Node versions that cannot `require()` an ES module. Mocha and many other tools then use `import()`.
 */
export function compileRequired(
  path: string,
  code: string,
  format: string | undefined,
  compile: () => unknown,
): unknown {
  const isChecked =
    !isInstalled(path) && formatOf(path, format) !== "commonjs" && /\bimport\b|\bfrom\b/.test(code);
  if (!isChecked) return compile();
  const seen = new Set([path]);
  visitImports(path, parse(path, code), seen);
  const result = compile();
  for (const file of seen) harmless.add(file);
  return result;
}

function visitImports(path: string, source: SourceFile, seen: Set<string>): void {
  for (const statement of source.statements) {
    const specifier = importedModule(parser(), statement);
    const file = specifier === undefined ? undefined : loadedFile(specifier, path);
    if (file === undefined || seen.has(file) || harmless.has(file)) continue;
    seen.add(file);
    if (isInstalled(file) || !isScript(file) || !existsSync(file)) continue;
    const imported = parse(file, readFileSync(file, "utf8"));
    // Node loads CommonJS through the hook of `require()`.
    if (formatIn(file, imported) === "commonjs") continue;
    if (weaveFile(file, "module") !== undefined) throw unseen(file, path);
    visitImports(file, imported, seen);
  }
}

function unseen(file: string, importer: string): Error {
  const { code, message } = problem("importNotSeen", { start: 0, end: 0 }, shownPath(importer));
  const error = fileError(`${shownPath(file)}: error ${code}: ${message}`);
  return Object.assign(error, { code: "ERR_REQUIRE_ESM" });
}

function parse(path: string, code: string): SourceFile {
  const ts = parser();
  return ts.createSourceFile(path, code, ts.ScriptTarget.Latest);
}

function formatIn(path: string, source: SourceFile): Format {
  return formatOf(path, undefined) ?? (parser().isExternalModule(source) ? "module" : "commonjs");
}
