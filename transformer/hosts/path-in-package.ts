import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

/**
 * Returns the name of the file's package and its path in it, such as `my-app/src/main.ts`. This name is the same on every machine, and
 * unique among packages. A `package.json` without a name only sets options for its directory. If no directory above the file has a name,
 * the nearest `package.json` counts. Directories outside of the repository differ between machines, and do not count.
 *
 * @returns `undefined` if the file is outside of every package
 */
export function pathInPackage(fileName: string): string | undefined {
  const file = resolve(fileName);
  let unnamed: string | undefined;
  for (let dir = dirname(file); ; dir = dirname(dir)) {
    const name = packageNameIn(dir);
    if (typeof name === "string" && name !== "") return `${name}/${slashed(relative(dir, file))}`;
    if (name !== undefined) unnamed ??= slashed(relative(dir, file));
    if (dir === dirname(dir) || existsSync(join(dir, ".git"))) return unnamed;
  }
}

/** Returns the name in `package.json`, `null` if it has no name, or `undefined` if there is no `package.json`. */
function packageNameIn(dir: string): unknown {
  try {
    const text = readFileSync(join(dir, "package.json"), "utf8").replace(/^\uFEFF/, "");
    const { name = null } = JSON.parse(text) as { name?: unknown };
    return name;
  } catch {
    return undefined;
  }
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}
