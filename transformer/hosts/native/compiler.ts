import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

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
 * The project's own. By its path, since `.bin/tsc` may be somebody else's.
 *
 * @returns `undefined` when there is none
 */
export function nativeCompiler(config: string): NativeCompiler | undefined {
  const manifestPath = resolved(config, "typescript/package.json");
  if (manifestPath === undefined) return undefined;
  const { version, bin } = JSON.parse(readFileSync(manifestPath, "utf8")) as {
    readonly version: string;
    readonly bin?: { readonly tsc?: string };
  };
  if (bin?.tsc === undefined) return undefined; // It has a library only.
  const script = join(dirname(manifestPath), bin.tsc);
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

function resolved(from: string, id: string): string | undefined {
  try {
    return createRequire(from).resolve(id);
  } catch {
    return undefined;
  }
}
