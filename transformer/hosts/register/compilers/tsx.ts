import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { mapToDisk } from "../../../text/source-map";
import { optionsOfNode } from "./preloads";
import { tsconfigFor } from "./tsconfig";
import type { Compiler } from "./compiler";

/** The part of esbuild's API that tsx uses to compile. */
interface Esbuild {
  transformSync(code: string, options: object): { readonly code: string };
}

let compiler: Compiler | undefined;

export function registeredTsx(): Compiler | undefined {
  if (compiler !== undefined) return compiler;
  const file = tsxFile();
  if (file === undefined) return undefined;
  return (compiler = compilerOf(createRequire(file)("esbuild") as Esbuild));
}

/**
 * Returns a file of tsx, as a path or a URL. tsx is registered through an argument of Node, and inside a thread, only its loaded files
 * reveal it.
 */
function tsxFile(): string | undefined {
  const candidates = [...optionsOfNode(), ...Object.keys(require.cache)];
  for (const candidate of candidates) {
    const value = candidate.replace(/^--[\w-]+=/, "");
    if (/^tsx(?:\/|$)/.test(value)) return createRequire(`${process.cwd()}/`).resolve("tsx/package.json");
    if (/[\\/]tsx[\\/]dist[\\/]/.test(value)) return value;
  }
  return undefined;
}

function compilerOf(esbuild: Esbuild): Compiler {
  return {
    formatOfModules: "commonjs",
    compile({ code, source }, path, format) {
      const url = pathToFileURL(path).href;
      const output = esbuild.transformSync(code, {
        format: format === "module" ? "esm" : "cjs",
        loader: extname(path).replace(/^\.[cm]?/, ""),
        platform: "node",
        target: `node${process.versions.node}`,
        keepNames: true,
        sourcefile: url,
        sourcemap: "inline",
        tsconfigRaw: tsconfigFor(path).content,
        define: format === "module" ? {} : { "import.meta.url": JSON.stringify(url) },
      });
      return { format, source: mapToDisk(path, output.code, () => source) };
    },
  };
}
