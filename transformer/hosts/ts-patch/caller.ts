import type * as TS from "typescript";
import type { Compiler } from "./compiler";

// A TypeScript that `ts-patch install` has patched calls us for every program: for those of compilers, and for those of
// linters, codemods and type counters, which write what they find back into the file at the positions they were given.
// So only a caller that is known to be a compiler gets woven text.

/** Packages that call TypeScript to compile: they emit what runs, or report on it. */
const COMPILERS: ReadonlySet<string> = new Set([
  "@nestjs/cli",
  "fork-ts-checker-webpack-plugin",
  "ts-jest",
  "ts-loader",
  "ts-node",
]);

export interface Caller {
  readonly isCompiler: boolean;
  /** Its package, if it is in one. */
  readonly name: string | undefined;
}

/** The hosts of compilers. A watch makes its later programs when a timer is due, and then no caller is on the stack. */
const compiling = new WeakSet<TS.CompilerHost>();

/**
 * Finds out who asked TypeScript for the program.
 *
 * @param entry our function that TypeScript called: what it called itself is left out
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

/** The package of the function that called TypeScript, or `tsc`. */
function callerAmong(files: readonly string[]): string | undefined {
  const [compiler = ""] = files; // What ts-patch added to it is part of it.
  if (isTsc(compiler)) return "tsc";
  const caller = files.find((file) => file !== compiler && !file.startsWith("node:"));
  const name = caller === undefined ? undefined : packageOf(caller);
  return name === "ts-patch" && isTsc(caller ?? "") ? "tsc" : name;
}

function isTsc(file: string): boolean {
  return /[\\/]_?tsc\.js$/.test(file);
}

function packageOf(file: string): string | undefined {
  const [, name] = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file) ?? [];
  return name?.replace("\\", "/");
}

/** Whether it is `ts-patch/compiler`, which no tool takes unless somebody tells it to. */
function isChosen(ts: Compiler): boolean {
  return Object.entries(require.cache).some(
    ([file, module]) => /[\\/]ts-patch[\\/]compiler[\\/]/.test(file) && module?.exports === ts,
  );
}

/** The files of the functions that are being called, the innermost first. */
function filesOnStack(below: (...args: never) => unknown): string[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const holder: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = Infinity;
    Error.prepareStackTrace = (_, sites) => sites.map((site) => site.getFileName());
    Error.captureStackTrace(holder, below);
    const files = holder.stack as readonly (string | null | undefined)[]; // It is made when it is asked for.
    return files.filter((file) => typeof file === "string");
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}
