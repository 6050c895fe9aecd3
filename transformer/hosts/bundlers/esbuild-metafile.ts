import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Unsupported } from "../../../runtime/base/unsupported";
import { isInstalled } from "../../resolve/installed";
import type { ExternalImport } from "./externals";
import { pathOf } from "./source-files";
import { refusedPlace, type Evidence } from "./unsupported";

// Reads what esbuild or Bun reports about a finished build: which files are in it, and what they import.

export const isBun = "bun" in process.versions;

/** The result of a build. Bun includes the metafile only if the caller requests it. */
export interface Built {
  readonly metafile?:
    | {
        readonly inputs: Readonly<Record<string, { readonly imports: readonly Import[] }>>;
        readonly outputs: Readonly<
          Record<
            string,
            {
              readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>>;
              readonly imports: readonly Import[];
            }
          >
        >;
      }
    | undefined;
  /** Present if the build writes no files. */
  readonly outputFiles?: readonly { readonly path: string; readonly text: string }[] | undefined;
  /** The outputs of Bun. */
  readonly outputs?: readonly { text(): Promise<string> }[];
}

interface Import {
  readonly path: string;
  readonly kind: string;
  /** Whether the imported file is not in the build. */
  readonly external?: boolean;
}

interface Unseen {
  readonly path: string;
  /** The code of each output that contains the file. */
  readonly codes: readonly string[];
}

/** Returns the files with code in an output that our plugin never loaded. An input in another namespace may also stand for a file. */
export function unseenInputs(
  { metafile, outputFiles }: Built,
  seen: ReadonlySet<string>,
  dir = ".",
): Unseen[] {
  const unseen = new Map<string, string[]>();
  for (const [output, { inputs }] of Object.entries(metafile?.outputs ?? {})) {
    for (const [input, { bytesInOutput }] of Object.entries(inputs)) {
      const paths = bytesInOutput === 0 ? [] : pathsOf(input, dir);
      for (const path of paths) {
        if (seen.has(path) || isInstalled(path)) break;
        unseen.set(path, [...(unseen.get(path) ?? []), output]);
      }
    }
  }
  const inMemory = outputFiles?.map(({ text }) => text);
  return [...unseen].map(([path, outputs]) => ({
    path,
    codes: inMemory ?? outputs.flatMap((output) => codeOf(resolve(dir, output))),
  }));
}

/** Returns the imports of packages that are in an output. Bun lists them only for the inputs. */
export function externalImportsOf({ metafile }: Built, dir = "."): ExternalImport[] {
  const { inputs = {}, outputs = {} } = metafile ?? {};
  const kept = new Set(
    Object.values(outputs).flatMap(({ imports }) =>
      imports.flatMap(({ path, external }) => (external ? [path] : [])),
    ),
  );
  return Object.entries(inputs).flatMap(([input, { imports }]) =>
    imports
      .filter(({ path, external }) => external && (isBun || kept.has(path)))
      .flatMap(({ path: specifier }) => pathsOf(input, dir).map((importer) => ({ specifier, importer }))),
  );
}

interface UnsupportedInput {
  readonly path: string;
  readonly place: Unsupported;
  readonly evidence: Evidence;
}

/** Returns the files with code in an output that import an entry of the runtime that throws. */
export function unsupportedInputs({ metafile, outputFiles }: Built, dir = "."): UnsupportedInput[] {
  const { inputs = {}, outputs = {} } = metafile ?? {};
  const withCode = Object.values(outputs).flatMap((output) =>
    Object.entries(output.inputs).flatMap(([input, { bytesInOutput }]) => (bytesInOutput > 0 ? [input] : [])),
  );
  const places = new Map(withCode.map((input) => [input, refusedPlace(resolve(dir, input))]));
  const imports = [...places.keys()].flatMap((input) =>
    (inputs[input]?.imports ?? []).flatMap(({ path, kind }) => {
      const place = places.get(path);
      return place === undefined ? [] : [{ input, place, isDynamic: kind === "dynamic-import" }];
    }),
  );
  if (imports.length === 0) return [];
  const codes =
    outputFiles?.map(({ text }) => text) ??
    Object.keys(outputs).flatMap((path) => codeOf(resolve(dir, path)));
  const evidence = { codes, isImportedDynamically: imports.some(({ isDynamic }) => isDynamic) };
  const files = new Map(
    imports.flatMap(({ input, place, isDynamic }) => (isDynamic ? [] : [[input, place] as const])),
  );
  return [...files].flatMap(([input, place]) =>
    pathsOf(input, dir).map((path) => ({ path, place, evidence })),
  );
}

/**
 * Returns the possible paths of an input such as `src/pay.ts`, `its-namespace:src/pay.ts`, or `src/pay.ts?query`. An input with attributes,
 * such as `with { type: "text" }`, is not code that runs, and has no path.
 */
function pathsOf(input: string, dir: string): string[] {
  if (input.includes(" with {")) return [];
  const names = [input, input.slice(input.indexOf(":") + 1)];
  return [...new Set(names.map((name) => resolve(dir, pathOf(name))))];
}

function codeOf(path: string): string[] {
  try {
    return [readFileSync(path, "utf8")];
  } catch {
    return []; // The file was never written, or is gone. So it proves no lock.
  }
}
