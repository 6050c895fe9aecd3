import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";

const MEMORY_MB = 4_000;

/** Returns the path of a model. */
export function fileOf(model: string): string {
  return resolve(__dirname, `${model}.pml`);
}

/**
 * Lets SPIN translate a model to C, and compiles the verifier `pan` in the folder.
 *
 * @param defines names that are defined for the preprocessor
 * @param options options of gcc
 */
export function buildVerifier(
  folder: string,
  model: string,
  defines: readonly string[],
  options: readonly string[],
): void {
  need(folder, "spin", ...defines.map((define) => `-D${define}`), "-a", fileOf(model));
  need(folder, "gcc", "-w", `-DMEMLIM=${MEMORY_MB}`, ...options, "-o", "pan", "pan.c");
}

/** Runs the verifier in the folder, and returns its output. It has found errors if its status is not 0. */
export function runVerifier(folder: string, options: readonly string[]): string {
  const { stdout, error } = spawnSync(join(folder, "pan"), options, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  if (error !== undefined) throw error;
  return stdout;
}

/** Runs a program that must succeed, and returns its output. */
export function need(folder: string, program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(" ")} failed: ${stdout ?? ""}${stderr ?? ""}`, { cause: error });
}
