import { readFileSync } from "node:fs";

/** What a hook returns for a file, as Node knows it. */
interface Loaded {
  readonly format: string;
  readonly source: string;
}

const isDeno = "deno" in process.versions;

/**
 * Returns the module for a JSON file that `require()` loads in Deno, which would run the JSON as JavaScript if anybody hooks
 * into loading (seen in Deno 2.9.6). ioredis requires such a file.
 *
 * @returns `undefined` for all other files, and in Node
 */
export function jsonRequiredInDeno(path: string, context: object): Loaded | undefined {
  if (!isDeno || !path.endsWith(".json")) return undefined;
  const { importAttributes } = context as { readonly importAttributes?: { readonly type?: string } };
  if (importAttributes?.type !== undefined) return undefined; // An import, which Deno knows to be JSON.
  return { format: "commonjs", source: `module.exports = ${readFileSync(path, "utf8")}` };
}
