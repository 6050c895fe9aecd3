import { pathToFileURL } from "node:url";
import { inlineMap } from "../../../text/source-map";
import { fileError } from "../../one-file/file-error";
import type { Compiler } from "./compiler";

/** Node's own type stripping, which puts blanks in the places of types: so what it leaves stands where it stood. */
export const byNode: Compiler = {
  formatOfModules: "module",
  compile({ code, map }, path, format) {
    const source = code + inlineMap(Object.assign(map, { sources: [pathToFileURL(path).href] }));
    if (!/tsx?$/.test(path)) return { format, source };
    if (path.endsWith("x")) throw fileError(`${cannotRun(path)}.`); // What no Node does.
    if (!stripsTypes()) throw fileError(`${cannotRun(path)}, or with Node 22.18 or later.`);
    return { format: `${format}-typescript`, source };
  },
};

function cannotRun(path: string): string {
  const words = path.endsWith("x") ? "TypeScript that may have JSX" : "TypeScript";
  return `Node ${process.versions.node} cannot run ${path}, which is ${words}: run it with tsx, \`node --import tsx --import lockweave/register\``;
}

function stripsTypes(): boolean {
  const { typescript } = process.features as { readonly typescript?: unknown };
  return typescript === "strip" || typescript === "transform";
}
