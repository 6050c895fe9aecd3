import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

/**
 * The file by the name of its package and its path in it: `my-app/src/main.ts`. So it has the same name on every machine, and
 * no other package has it. A `package.json` without a name only sets options for its directory. If no directory above the file has a
 * name, the nearest `package.json` counts. What is outside of the repository differs between machines, and does not count.
 *
 * @returns `undefined` of a file outside of every package
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

/** `null` of a `package.json` without one, and `undefined` without a `package.json`. */
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
