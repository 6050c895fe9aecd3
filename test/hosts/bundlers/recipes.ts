import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE } from "../project";

const PAGE = readFileSync(join(PACKAGE, "docs/hosts.md"), "utf8");

/** A configuration that users are shown. */
export interface Recipe {
  readonly file: string;
  readonly text: string;
}

/** What docs/hosts.md says under a heading: the file that its code names in the first line. */
export function recipe(heading: string): Recipe {
  const [, section = ""] = PAGE.split(`\n## ${heading}\n`);
  const [, file = "", text = ""] =
    /^```[jt]s\n\/\/ (\S+)\n(.*?)^```$/ms.exec(section.split("\n## ")[0] ?? "") ?? [];
  if (text === "") throw new Error(`docs/hosts.md has no configuration for ${heading}`);
  return { file, text };
}

/** The code under a heading that names this file in its first line. */
export function codeUnder(heading: string, file: string): string {
  const [, section = ""] = PAGE.split(`\n## ${heading}\n`);
  const codes = [...(section.split("\n## ")[0] ?? "").matchAll(/^```[jt]s\n\/\/ (\S+)\n(.*?)^```$/gms)];
  const [, , code] = codes.find(([, name]) => name === file) ?? [];
  if (code === undefined) throw new Error(`docs/hosts.md has no ${file} for ${heading}`);
  return code;
}

/** The same without the weave. */
export function unwoven({ file, text }: Recipe): Recipe {
  const without = text.replace("lockweave()", "");
  if (without === text) throw new Error(`${file} has no lockweave()`);
  return { file, text: without };
}
