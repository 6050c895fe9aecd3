import { buildNative } from "../hosts/native/build";
import { nativeCompiler, type NativeCompiler } from "../hosts/native/compiler";
import { projectsInOrder } from "../hosts/native/config";
import { printed } from "../hosts/native/compiler-output";
import { NoProjectError } from "../hosts/native/project";
import { parser } from "../parser/parser";
import { UsageError } from "../terminal/usage-error";
import { block, print, printError, safe } from "../terminal/printer";
import { compilingFor } from "./typescript";
import { watchSources, type Run } from "./watch";

/**
 * Compiles the project after the projects that it references, and prints what the compiler prints.
 *
 * @returns the exit code
 * @throws {UsageError} if no compiler is installed
 */
export function build(
  config: string,
  cwd: string,
  { watch: isWatching, typescript }: { readonly watch: boolean; readonly typescript: string | undefined },
): number {
  const { installed } = compilingFor(config, typescript, cwd);
  const compiler = installed && nativeCompiler(installed);
  if (compiler === undefined) {
    throw new UsageError(
      "`lockweave build` needs TypeScript 5.9 or later. Fix: run `npm install --save-dev typescript`, or name another package with `--typescript`.",
    );
  }
  if (isWatching) watchSources(() => buildAll(compiler, config, cwd));
  return isWatching ? 0 : buildAll(compiler, config, cwd).code;
}

interface Result extends Run {
  readonly code: number;
}

function buildAll(compiler: NativeCompiler, config: string, cwd: string): Result {
  const results = projectsInOrder(parser(), config).map((project) => buildOne(compiler, project, cwd));
  return {
    code: Math.max(0, ...results.map(({ code }) => code)),
    errors: results.reduce((sum, { errors }) => sum + errors, 0),
    sources: results.flatMap(({ sources }) => sources),
  };
}

function buildOne(compiler: NativeCompiler, config: string, cwd: string): Result {
  try {
    const { code, diagnostics, others, warnings, sources } = buildNative(parser(), compiler, config, cwd);
    print(...diagnostics.map((one) => block(printed(one, cwd))), ...others.map((line) => safe`${line}`));
    printError(...warnings.map((one) => block(printed(one, cwd))));
    return { code, errors: diagnostics.length, sources };
  } catch (error) {
    if (!(error instanceof NoProjectError)) throw error;
    print(...error.diagnostics.map((one) => block(printed(one, cwd))));
    if (error.message !== "") print(safe`${error.message}`);
    return { code: 1, errors: Math.max(1, error.diagnostics.length), sources: [config] };
  }
}
