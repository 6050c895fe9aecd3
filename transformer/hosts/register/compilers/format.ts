import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The module format in which Node runs a file. */
export type Format = "module" | "commonjs";

/**
 * Returns the format of a file according to Node, its extension, or its package.json. `undefined` means that the module syntax of the file
 * decides.
 *
 * @param reportedFormat Node's name for the format, such as `module-typescript`
 */
export function formatOf(path: string, reportedFormat: string | null | undefined): Format | undefined {
  const [word] = reportedFormat?.split("-") ?? [];
  if (word === "module" || word === "commonjs") return word;
  const [, letter] = /\.([cm])[jt]s$/.exec(path) ?? [];
  if (letter !== undefined) return letter === "m" ? "module" : "commonjs";
  return packageType(dirname(path));
}

const packageTypes = new Map<string, Format | undefined>();

function packageType(dir: string): Format | undefined {
  if (!packageTypes.has(dir)) packageTypes.set(dir, readPackageType(dir));
  return packageTypes.get(dir);
}

function readPackageType(dir: string): Format | undefined {
  let text: string;
  try {
    text = readFileSync(join(dir, "package.json"), "utf8");
  } catch {
    const parent = dirname(dir);
    return parent === dir ? undefined : packageType(parent);
  }
  const { type } = JSON.parse(text) as { readonly type?: unknown };
  return type === "module" || type === "commonjs" ? type : undefined;
}
