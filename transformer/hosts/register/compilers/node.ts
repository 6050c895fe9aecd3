import { pathToFileURL } from "node:url";
import { inlineMap } from "../../../text/source-map";
import type { Compiler } from "./compiler";

/** Node's own type stripping, which puts blanks in the places of types: so what it leaves stands where it stood. */
export const byNode: Compiler = {
  formatOfModules: "module",
  compile({ code, map }, path, format) {
    const source = code + inlineMap(Object.assign(map, { sources: [pathToFileURL(path).href] }));
    if (!path.endsWith("ts")) return { format, source };
    if (!stripsTypes()) {
      throw new Error(
        `Node ${process.versions.node} cannot run ${path}, which is TypeScript: run it with tsx, \`node --import tsx --import lockweave/register\`, or with Node 22.18 or later.`,
      );
    }
    return { format: `${format}-typescript`, source };
  },
};

function stripsTypes(): boolean {
  const { typescript } = process.features as { readonly typescript?: unknown };
  return typescript === "strip" || typescript === "transform";
}
