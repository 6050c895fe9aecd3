import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(__dirname, "../..");

/** The directory for results that the next run uses. */
export const CACHE = join(ROOT, "node_modules/.cache/mutation");

/** The folders to mutate. */
export const FOLDERS = ["transformer", "runtime"] as const;

const texts = new Map<string, string>();

export function textOf(file: string): string {
  const known = texts.get(file) ?? readFileSync(join(ROOT, file), "utf8");
  texts.set(file, known);
  return known;
}

export function hashOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

/** Returns the TypeScript files at and below the paths, relative to the root. */
export function filesAt(...paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (path.endsWith(".ts")) return [path];
    return readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.startsWith("fixtures"))
      .map((file) => join(path, file))
      .toSorted();
  });
}
