import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { mapToDisk } from "../../../text/source-map";
import { tsconfigFor } from "../tsconfig";
import type { Compiler } from "./compiler";

/** esbuild, as far as tsx compiles with it. */
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
 * A file of tsx's, by its path or its URL. It is registered by an argument of Node's, and leaves no other sign in each
 * thread but that it is loaded.
 */
function tsxFile(): string | undefined {
  const { NODE_OPTIONS = "" } = process.env;
  const words = [...process.execArgv, ...NODE_OPTIONS.split(/\s+/), ...Object.keys(require.cache)];
  for (const word of words) {
    const value = word.replace(/^--[\w-]+=/, "");
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
      const made = esbuild.transformSync(code, {
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
      return { format, source: mapToDisk(path, made.code, () => source) };
    },
  };
}
