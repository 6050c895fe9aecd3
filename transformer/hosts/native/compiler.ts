import { spawnSync } from "node:child_process";
import { installedTypeScripts, type InstalledTypeScript } from "./installed";

/** A compiler that runs as a program, because it may have no API. TypeScript 7.0 has none. */
export interface NativeCompiler {
  readonly version: string;
  run(args: readonly string[], cwd: string): Ran;
}

interface Ran {
  readonly code: number;
  readonly output: string;
}

/**
 * Returns the TypeScript that compiles a project, which is normally `typescript` itself. If that is `@typescript/typescript6`, it leaves
 * the name `tsc` to another dependency, which is TypeScript 7.
 */
export function compilingTypeScript(config: string): InstalledTypeScript | undefined {
  const all = installedTypeScripts(config);
  const usual = all.find(({ name }) => name === "typescript");
  if (usual?.hasTsc === true) return usual;
  const others = all.filter(({ script }) => script !== undefined).toSorted((a, b) => b.major - a.major);
  const native = others.find(({ major }) => major >= 7);
  if (native !== undefined) return native;
  return usual === undefined ? others[0] : usual.script === undefined ? undefined : usual;
}

/**
 * Returns the compiler as a program. It runs the script by its path, because `.bin/tsc` may belong to another package.
 *
 * @returns `undefined` if the package contains only a library
 */
export function nativeCompiler({ version, script }: InstalledTypeScript): NativeCompiler | undefined {
  if (script === undefined) return undefined;
  return {
    version,
    run(args, cwd) {
      const { status, error, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
        cwd,
        encoding: "utf8",
        maxBuffer: 2 ** 30,
      });
      if (error !== undefined) throw error;
      // The compiler writes all its output to one of the two streams. A wrapper may write a notice about itself to the other.
      return { code: status ?? 1, output: stdout === "" ? stderr : stdout };
    },
  };
}
