import { statSync, watch, type FSWatcher } from "node:fs";
import { dirname, join } from "node:path";
import { print, safe } from "../terminal/printer";

/** The result of one run over the sources. */
export interface Run {
  readonly errors: number;
  readonly sources: readonly string[];
}

/** Editors save in several steps, so a run waits until they have finished. */
const SETTLE_MS = 50;

/** Runs now and after each change. It prints the compiler's own messages, by which editors detect when a run begins and ends. */
export function watchSources(runOnce: () => Run): void {
  const watchers = new Map<string, FSWatcher>();
  let sources: ReadonlySet<string> = new Set();
  let timer: NodeJS.Timeout | undefined;

  const run = (): void => {
    const startedAt = Date.now();
    const result = runOnce();
    sources = new Set(result.sources);
    watchDirectories(new Set(result.sources.map((source) => dirname(source))));
    printStatus(`Found ${result.errors} error${result.errors === 1 ? "" : "s"}. Watching for file changes.`);
    if (result.sources.some((source) => changedAt(source) > startedAt)) runAgain();
  };
  const runAgain = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      printStatus("File change detected. Starting incremental compilation...");
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

  printStatus("Starting compilation in watch mode...");
  run();
}

/** Matches TypeScript sources, and not the files that the build itself writes. */
const MAY_BE_SOURCE = /(?<!\.d)\.[cm]?tsx?$/;

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function printStatus(status: string): void {
  print(safe`${new Date().toLocaleTimeString("en-US")} - ${status}\n`);
}
