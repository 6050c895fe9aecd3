import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns the licenses of the packages in the bundle, ordered by package directory. */
export function notices(modules: readonly string[]): string {
  const packages = [...new Set(modules.flatMap(packageOf))].toSorted();
  return [
    "Lockweave's compile side contains code of these packages. What follows are their licenses.",
    ...packages.map(noticeOf),
  ].join(`\n\n${"-".repeat(80)}\n\n`);
}

/** Returns the directory of the innermost package, or nothing if the module is not in a package. */
function packageOf(module: string): string[] {
  const [directory] = /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(module.replaceAll("\\", "/")) ?? [];
  return directory === undefined ? [] : [directory];
}

function noticeOf(directory: string): string {
  const { name, version, license } = JSON.parse(
    readFileSync(join(directory, "package.json"), "utf8"),
  ) as Record<"name" | "version" | "license", string>;
  const texts = readdirSync(directory).filter((file) => /^licen[cs]e/i.test(file));
  if (texts.length === 0) throw new Error(`${name} comes without its license.`);
  return [
    `${name} ${version} (${license})`,
    ...(name === "typescript" ? [CUT] : []),
    ...texts.map((file) => readFileSync(join(directory, file), "utf8").trim()),
    ...(name === "typescript" ? [unicodeNotice(directory)] : []),
  ].join("\n\n");
}

const CUT = "Parts of its lib/typescript.js, changed: cut out, and minified.";

/** Returns the Unicode notice. The bundled parts contain only TypeScript's tables of identifier characters from third parties. */
function unicodeNotice(directory: string): string {
  const all = readFileSync(join(directory, "ThirdPartyNoticeText.txt"), "utf8");
  const [, notice] = /^-+ Unicode -+$(.*?)^-+$/ms.exec(all) ?? [];
  if (notice === undefined) throw new Error("TypeScript's notices are written otherwise.");
  return `Unicode\n${notice.trimEnd()}`;
}
