import { readFileSync } from "node:fs";

/** The result of a load hook for a file, in Node's format. */
interface Loaded {
  readonly format: string;
  readonly source: string;
}

const isDeno = "deno" in process.versions;

/**
 * Returns the module for a JSON file that `require()` loads in Deno. If any load hook is registered, Deno runs the JSON as JavaScript (seen
 * in Deno 2.9.6). ioredis requires such a file.
 *
 * @returns `undefined` for all other files, and in Node
 */
export function jsonRequiredInDeno(path: string, context: object): Loaded | undefined {
  if (!isDeno || !path.endsWith(".json")) return undefined;
  const { importAttributes } = context as { readonly importAttributes?: { readonly type?: string } };
  if (importAttributes?.type !== undefined) return undefined; // An import with a type attribute, which Deno parses as JSON.
  return { format: "commonjs", source: `module.exports = ${readFileSync(path, "utf8")}` };
}
