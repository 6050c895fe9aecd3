import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE } from "../project";

const page = (name: string): string => readFileSync(join(PACKAGE, "docs", name), "utf8");
const PAGE = page("hosts.md");

/** A configuration from the documentation. */
export interface Recipe {
  readonly file: string;
  readonly text: string;
}

/** Returns the configuration under a heading of docs/hosts.md. The first line of its code names the file. */
export function recipe(heading: string): Recipe {
  const [, section = ""] = PAGE.split(`\n## ${heading}\n`);
  const [, file = "", text = ""] =
    /^```[jt]s\n\/\/ (\S+)\n(.*?)^```$/ms.exec(section.split("\n## ")[0] ?? "") ?? [];
  if (text === "") throw new Error(`docs/hosts.md has no configuration for ${heading}`);
  return { file, text };
}

/** Returns the code under a heading of a page that names this file in its first line, or its only JSON. */
export function codeUnder(heading: string, file: string, from = "hosts.md"): string {
  const [, section = ""] = page(from).split(`\n## ${heading}\n`);
  const codes = [
    ...(section.split("\n## ")[0] ?? "").matchAll(/^```(?:[jt]s\n\/\/ (\S+)|json)\n(.*?)^```$/gms),
  ];
  const [, , code] =
    codes.find(([, name]) => (file.endsWith(".json") ? name === undefined : name === file)) ?? [];
  if (code === undefined) throw new Error(`docs/${from} has no ${file} for ${heading}`);
  return code;
}

/** Returns the configuration without Lockweave's plugin. */
export function unwoven({ file, text }: Recipe): Recipe {
  const without = text.replace("lockweave()", "");
  if (without === text) throw new Error(`${file} has no lockweave()`);
  return { file, text: without };
}
