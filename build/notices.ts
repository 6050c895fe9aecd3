import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The licenses of the packages that modules of the bundle are from, in the order of their names. */
export function notices(modules: readonly string[]): string {
  const packages = [...new Set(modules.flatMap(packageOf))].toSorted();
  return [
    "Lockweave's compile side contains code of these packages. What follows are their licenses.",
    ...packages.map(noticeOf),
  ].join(`\n\n${"-".repeat(80)}\n\n`);
}

/** The innermost package's directory. */
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

/** Of what TypeScript itself is made of, only the tables of identifiers' characters are among the parts. */
function unicodeNotice(directory: string): string {
  const all = readFileSync(join(directory, "ThirdPartyNoticeText.txt"), "utf8");
  const [, notice] = /^-+ Unicode -+$(.*?)^-+$/ms.exec(all) ?? [];
  if (notice === undefined) throw new Error("TypeScript's notices are written otherwise.");
  return `Unicode\n${notice.trimEnd()}`;
}
