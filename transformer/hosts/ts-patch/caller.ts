import type * as TS from "typescript";
import { filesOnStack, packageOf } from "../stack";
import type { Compiler } from "./compiler";

// A TypeScript that `ts-patch install` has patched calls this plugin for every program. That includes the programs of linters, codemods,
// and type counters, which write their results back into the file at the positions that TypeScript reports. So only a caller that is known
// to be a compiler gets woven text.

/** The packages that call TypeScript to compile: they emit code that runs, or report on it. */
const COMPILERS: ReadonlySet<string> = new Set([
  "@nestjs/cli",
  "fork-ts-checker-webpack-plugin",
  "ts-jest",
  "ts-loader",
  "ts-node",
]);

export interface Caller {
  readonly isCompiler: boolean;
  /** The caller's package, if it is in one. */
  readonly name: string | undefined;
}

/** The hosts of known compilers. A watch creates its later programs from a timer, when no caller is on the stack. */
const compiling = new WeakSet<TS.CompilerHost>();

/**
 * Returns who requested the program from TypeScript.
 *
 * @param entry our function that TypeScript called. The stack above it is ignored.
 */
export function callerOf(
  ts: Compiler,
  host: TS.CompilerHost | undefined,
  entry: (...args: never) => unknown,
): Caller {
  if (host !== undefined && compiling.has(host)) return { isCompiler: true, name: undefined };
  const caller = callerAmong(filesOnStack(entry));
  const isCompiler = caller === "tsc" || COMPILERS.has(caller ?? "") || isChosen(ts);
  if (isCompiler && host !== undefined) compiling.add(host);
  return { isCompiler, name: caller };
}

/** Returns the package of the function that called TypeScript, or `tsc`. */
function callerAmong(files: readonly string[]): string | undefined {
  const [compiler = ""] = files; // The code that ts-patch added to the compiler is in the same file.
  if (isTsc(compiler)) return "tsc";
  const caller = files.find((file) => file !== compiler && !file.startsWith("node:"));
  const name = caller === undefined ? undefined : packageOf(caller);
  return name === "ts-patch" && isTsc(caller ?? "") ? "tsc" : name;
}

function isTsc(file: string): boolean {
  return /[\\/]_?tsc\.js$/.test(file);
}

/** Whether this is `ts-patch/compiler`, which a tool uses only if it is configured to. */
function isChosen(ts: Compiler): boolean {
  return Object.entries(require.cache).some(
    ([file, module]) => /[\\/]ts-patch[\\/]compiler[\\/]/.test(file) && module?.exports === ts,
  );
}
