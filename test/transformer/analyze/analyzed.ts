import { join } from "node:path";
import ts from "typescript";
import { analyze, type Analysis } from "../../../transformer/analyze/analyze";
import { readTransactions } from "../../../transformer/analyze/transaction-libraries";
import { weave } from "../../../transformer/weave/weave";

const ROOT = join(__dirname, "../../../virtual");

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"],
  experimentalDecorators: true,
  types: [],
  module: ts.ModuleKind.NodeNext,
  strict: true,
  skipLibCheck: true,
  noEmit: true,
};

const libraries = new Map<string, ts.SourceFile | undefined>();

interface Setting {
  /** The directory of the program, if it uses packages that are installed there. */
  readonly root?: string;
  /** The plugin's option of this name. */
  readonly transactions?: readonly string[];
  readonly options?: ts.CompilerOptions;
}

/** Analyzes a program of these files, which must type-check. */
export function analyzed(files: Readonly<Record<string, string>>, setting: Setting = {}): Analysis {
  const { root = ROOT, transactions, options: own } = setting;
  const options = { ...OPTIONS, ...(root !== ROOT && { types: ["node"] }), ...own };
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(root, name), text]));
  const host = ts.createCompilerHost(options);
  host.getCurrentDirectory = () => root;
  const { getSourceFile, fileExists, readFile } = host;
  delete host.directoryExists; // The files exist only in memory.
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  host.getSourceFile = (path, ...rest) => {
    if (texts.has(path)) return getSourceFile(path, ...rest);
    if (!libraries.has(path)) libraries.set(path, getSourceFile(path, ...rest));
    return libraries.get(path);
  };
  const program = ts.createProgram({ rootNames: [...texts.keys()], options, host });
  const [error] = ts.getPreEmitDiagnostics(program);
  if (error !== undefined) {
    const where = error.file?.text.slice(error.start, (error.start ?? 0) + 40);
    throw new Error(`${ts.flattenDiagnosticMessageText(error.messageText, "\n")} at ${where}`);
  }
  const tagged = program
    .getSourceFiles()
    .filter(({ fileName }) => texts.has(fileName))
    .map((source) => {
      const woven = weave(source.fileName, source.text, { ts, module: "esm", sourceFile: source });
      const [wrong] = woven?.diagnostics ?? [];
      if (wrong !== undefined) throw new Error(wrong.message);
      return { source, plans: (woven?.sites ?? []).map(({ plan }) => plan), needs: woven?.needs ?? [] };
    });
  return analyze(ts, program, tagged, readTransactions(transactions).starters);
}

/** Returns the code and the reported words of each finding. */
export function found(files: Readonly<Record<string, string>>, setting?: Setting): string[] {
  return analyzed(files, setting).findings.map(
    ({ file, problem: { code, start, end } }) => `${code} ${file.text.slice(start, end)}`,
  );
}

/** Returns the message of each finding. */
export function messages(files: Readonly<Record<string, string>>): string[] {
  return analyzed(files).findings.map(({ problem: { message } }) => message);
}
