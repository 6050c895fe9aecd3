import module from "node:module";
import { pathToFileURL } from "node:url";
import { inlineMap } from "../../../text/source-map";
import { fileError } from "../../one-file/file-error";
import type { Compiler } from "./compiler";
import { otherPreloads } from "./preloads";

/** Node's own type stripping. It replaces types by blanks, so the positions of the remaining code do not change. */
export const byNode: Compiler = {
  formatOfModules: "module",
  compile({ code, map }, path, format) {
    const comment = inlineMap(Object.assign(map, { sources: [pathToFileURL(path).href] }));
    const source = code + comment;
    if (!/tsx?$/.test(path)) return { format, source };
    if ("deno" in process.versions && !path.endsWith("x")) {
      // Deno runs the result of a hook as it is, without stripping its types.
      return { format, source: stripTypeScriptTypes(code) + comment };
    }
    if (path.endsWith("x")) throw fileError(`${cannotRun(path)}.`); // No version of Node runs TSX.
    if (!stripsTypes()) throw fileError(`${cannotRun(path)}, or with Node 22.18 or later.`);
    return { format: `${format}-typescript`, source };
  },
};

function cannotRun(path: string): string {
  const kind = path.endsWith("x") ? "TypeScript that may have JSX" : "TypeScript";
  const others = otherPreloads().map((name) => `\`${name}\``);
  const [reason, fix] =
    others.length === 0
      ? ["", ""]
      : [
          `. Hooks such as ${others.join(" or ")} receive tagged files only from \`require()\``,
          "load the hook and `lockweave/register` with `--require`, and the file with `require()`, or ",
        ];
  return `Node ${process.versions.node} cannot run ${path}, which is ${kind}${reason}. Fix: ${fix}run it with tsx, \`node --import tsx --import lockweave/register\``;
}

/** Only Deno reaches this call. Node 20 does not have the function. */
function stripTypeScriptTypes(code: string): string {
  return (module as unknown as { stripTypeScriptTypes(code: string): string }).stripTypeScriptTypes(code);
}

function stripsTypes(): boolean {
  const { typescript } = process.features as { readonly typescript?: unknown };
  return typescript === "strip" || typescript === "transform";
}
