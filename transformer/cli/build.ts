import { statSync, watch, type FSWatcher } from "node:fs";
import { dirname, join } from "node:path";
import { buildNative } from "../hosts/native/build";
import { nativeCompiler, type NativeCompiler } from "../hosts/native/compiler";
import { projectsInOrder } from "../hosts/native/config";
import { printed } from "../hosts/native/diagnostics";
import { NoProjectError } from "../hosts/native/project";
import { parser } from "../parser/parser";
import { UsageError } from "../verify/usage-error";

/**
 * Compiles the project, behind those that it references, and says what the compiler would say.
 *
 * @returns the exit code
 * @throws {UsageError} when there is no compiler
 */
export function build(config: string, cwd: string, isWatching: boolean): number {
  const compiler = nativeCompiler(config);
  if (compiler === undefined) {
    throw new UsageError("This needs TypeScript: `npm install --save-dev typescript`.");
  }
  if (isWatching) watchProjects(compiler, config, cwd);
  return isWatching ? 0 : buildAll(compiler, config, cwd).code;
}

interface Result {
  readonly code: number;
  readonly errors: number;
  readonly sources: readonly string[];
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
    const { code, said, others, warnings, sources } = buildNative(parser(), compiler, config, cwd);
    process.stdout.write(said.map((one) => printed(one, cwd)).join(""));
    process.stdout.write(others.map((line) => `${line}\n`).join(""));
    process.stderr.write(warnings.map((one) => printed(one, cwd)).join(""));
    return { code, errors: said.length, sources };
  } catch (error) {
    if (!(error instanceof NoProjectError)) throw error;
    process.stdout.write(error.said.map((one) => printed(one, cwd)).join(""));
    process.stdout.write(error.message === "" ? "" : `${error.message}\n`);
    return { code: 1, errors: Math.max(1, error.said.length), sources: [config] };
  }
}

/** Editors save in several steps. */
const SETTLE_MS = 50;

/** In the compiler's own words, by which editors know when a build begins and ends. */
function watchProjects(compiler: NativeCompiler, config: string, cwd: string): void {
  const watchers = new Map<string, FSWatcher>();
  let sources: ReadonlySet<string> = new Set();
  let waiting: NodeJS.Timeout | undefined;

  const run = (): void => {
    const startedAt = Date.now();
    const result = buildAll(compiler, config, cwd);
    sources = new Set(result.sources);
    watchDirectories(new Set(result.sources.map((source) => dirname(source))));
    say(`Found ${result.errors} error${result.errors === 1 ? "" : "s"}. Watching for file changes.`);
    if (result.sources.some((source) => changedAt(source) > startedAt)) runAgain();
  };
  const runAgain = (): void => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      say("File change detected. Starting incremental compilation...");
      run();
    }, SETTLE_MS);
  };
  const watchDirectories = (dirs: ReadonlySet<string>): void => {
    for (const [dir, watcher] of watchers) {
      if (dirs.has(dir)) continue;
      watcher.close();
      watchers.delete(dir);
    }
    for (const dir of dirs) {
      if (watchers.has(dir)) continue;
      const changed = (_: string, name: string | null): void => {
        const isSource = name === null || sources.has(join(dir, name)) || MAY_BE_SOURCE.test(name);
        if (isSource) runAgain();
      };
      watchers.set(dir, watch(dir, changed));
    }
  };

  say("Starting compilation in watch mode...");
  run();
}

/** Not what the build itself writes. */
const MAY_BE_SOURCE = /(?<!\.d)\.[cm]?tsx?$/;

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function say(words: string): void {
  process.stdout.write(`${new Date().toLocaleTimeString("en-US")} - ${words}\n\n`);
}
