import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed } from "../../hosts/installed";

/** The packages of each host that the repository does not depend on. */
export const TOOLS = {
  webpack: ["webpack@5.112.2", "webpack-cli@7.3.1", "ts-loader@9.6.2", "typescript@6.0.3"],
  rspack: ["@rspack/core@2.3.2", "@rspack/cli@2.2.8"],
  tsup: ["tsup@9.0.0", "typescript@6.0.3", "@swc/core@1.16.22"],
  tsdown: ["tsdown@0.21.10", "typescript@6.0.3"],
  farm: ["@farmfe/core@1.7.11", "@farmfe/cli@1.0.5"],
  node: ["node@24"],
  typescript: ["typescript@7.0.2"],
  resolve: ["@rollup/plugin-node-resolve@16.0.3"],
} as const;

/** Returns the path of a file of an installed package. */
export async function fileOfTool(tool: keyof typeof TOOLS, file: string): Promise<string> {
  return join(await installed(TOOLS[tool]), file);
}

/** Loads a package as its users do, by `require()`. */
export async function requireTool(tool: keyof typeof TOOLS, name: string): Promise<unknown> {
  return createRequire(await fileOfTool(tool, "index.js"))(name);
}

/** Loads a file of a package that is an ES module. */
export async function importTool(tool: keyof typeof TOOLS, file: string): Promise<unknown> {
  return await import(pathToFileURL(await fileOfTool(tool, file)).href);
}
