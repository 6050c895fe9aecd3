import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed, type SetName } from "../../hosts/installed";

/** Returns the path of a file of an installed package. */
export async function fileOfTool(tool: SetName, file: string): Promise<string> {
  return join(await installed(tool), file);
}

/** Loads a package as its users do, by `require()`. */
export async function requireTool(tool: SetName, name: string): Promise<unknown> {
  return createRequire(await fileOfTool(tool, "index.js"))(name);
}

/** Loads a file of a package that is an ES module. */
export async function importTool(tool: SetName, file: string): Promise<unknown> {
  return await import(pathToFileURL(await fileOfTool(tool, file)).href);
}
