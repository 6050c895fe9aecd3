import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";

/** Removes the declarations that no public entry point imports, directly or indirectly. */
export function removeUnreachable(directory: string, entries: readonly string[]): void {
  const reachable = new Set(entries.filter((file) => existsSync(file)));
  for (const file of reachable) {
    for (const { fileName } of ts.preProcessFile(readFileSync(file, "utf8")).importedFiles) {
      if (!fileName.startsWith(".")) continue;
      const target = join(dirname(file), fileName);
      const found = [`${target}.d.ts`, join(target, "index.d.ts")].find((path) => existsSync(path));
      if (found === undefined) throw new Error(`${file} takes in ${fileName}, which has no declarations.`);
      reachable.add(found);
    }
  }
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const file = join(directory, name);
    if (file.endsWith(".d.ts") && !reachable.has(file)) rmSync(file);
  }
}
