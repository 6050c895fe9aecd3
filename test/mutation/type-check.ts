import { join } from "node:path";
import ts from "typescript";
import { filesAt, FOLDERS, ROOT, textOf } from "./sources";

/** Checks whether changed files compile. */
export class TypeCheck {
  readonly #changed = new Map<string, string>();
  #version = 0;
  readonly #service: ts.LanguageService;

  constructor() {
    const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile) as { config: object };
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
    const files = filesAt(...FOLDERS).map((file) => join(ROOT, file));
    this.#service = ts.createLanguageService({
      getScriptFileNames: () => files,
      getScriptVersion: (path) => String(this.#changed.has(path) ? this.#version : 0),
      getScriptSnapshot: (path) => {
        const text = this.#changed.get(path) ?? ts.sys.readFile(path);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCompilationSettings: () => options,
      getCurrentDirectory: () => ROOT,
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      fileExists: ts.sys.fileExists,
      readFile: ts.sys.readFile,
    });
  }

  /** Whether the file has no error with this text. Errors in other files do not count. */
  compiles(file: string, text: string): boolean {
    const path = join(ROOT, file);
    if (text === textOf(file)) return true;
    this.#changed.set(path, text);
    this.#version += 1;
    try {
      return (
        this.#service.getSyntacticDiagnostics(path).length === 0 &&
        this.#service.getSemanticDiagnostics(path).length === 0
      );
    } finally {
      this.#changed.delete(path);
    }
  }
}
