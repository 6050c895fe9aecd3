import module from "node:module";
import { pathToFileURL } from "node:url";
import { inlineMap } from "../../../text/source-map";
import type { Compiler } from "./compiler";

/** What newer versions of Node have. */
interface Stripping {
  stripTypeScriptTypes?(code: string): string;
}

/** Node's own type stripping, which puts blanks in the places of types: so what it leaves stands where it stood. */
export const byNode: Compiler = {
  formatOfModules: "module",
  compile({ code, map }, path) {
    const sources = [pathToFileURL(path).href];
    return (path.endsWith("ts") ? strip(code, path) : code) + inlineMap({ ...map, sources });
  },
};

function strip(code: string, path: string): string {
  const { stripTypeScriptTypes } = module as Stripping;
  if (stripTypeScriptTypes !== undefined) return stripTypeScriptTypes(code);
  throw new Error(
    `Node ${process.versions.node} cannot run ${path}, which is TypeScript: run it with tsx, \`node --import tsx --import lockweave/register\`, or with Node 22.18 or later.`,
  );
}
