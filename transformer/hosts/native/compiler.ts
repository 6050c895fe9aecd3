import { spawnSync } from "node:child_process";
import { installedTypeScripts, type InstalledTypeScript } from "./installed";

/** A compiler that is run as a program, since it may have no other way in: TypeScript 7.0 has none. */
export interface NativeCompiler {
  readonly version: string;
  run(args: readonly string[], cwd: string): Ran;
}

interface Ran {
  readonly code: number;
  readonly output: string;
}

/**
 * Returns the TypeScript that compiles a project: `typescript` itself. If that is `@typescript/typescript6`, it leaves
 * `tsc` to another dependency, which is TypeScript 7.
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
 * The compiler as a program. It is run by its path, since `.bin/tsc` may be somebody else's.
 *
 * @returns `undefined` if the package has a library only
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
      // It says all it has to say on one of the two: on the other a stand-in for it may tell that it is one.
      return { code: status ?? 1, output: stdout === "" ? stderr : stdout };
    },
  };
}
