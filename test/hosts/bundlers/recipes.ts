import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE } from "../project";

/** A configuration from the documentation. */
export interface Recipe {
  readonly file: string;
  readonly text: string;
}

/** Returns the text under a heading of a page, up to the next heading of the same or a higher level. */
function sectionOf(page: string, heading: string): string {
  const [, ...sections] = readFileSync(join(PACKAGE, "docs", page), "utf8").split(/^(?=##+ )/m);
  const start = sections.findIndex((section) => /^##+ (.*)\n/.exec(section)?.[1] === heading);
  const levelOf = (section: string): number => section.indexOf(" ");
  const level = levelOf(sections[start] ?? "");
  const next = sections.findIndex((section, index) => index > start && levelOf(section) <= level);
  return start < 0 ? "" : sections.slice(start, next < 0 ? undefined : next).join("");
}

/** Returns the configuration under a heading of docs/compilers.md. The first line of its code names the file. */
export function recipe(heading: string): Recipe {
  const section = sectionOf("compilers.md", heading);
  const [, file = "", text = ""] = /^```[jt]s\n\/\/ (\S+)\n(.*?)^```$/ms.exec(section) ?? [];
  if (text === "") throw new Error(`docs/compilers.md has no configuration for ${heading}`);
  return { file, text };
}

/** Returns the code under a heading of a page that names this file in its first line, or its only JSON. */
export function codeUnder(heading: string, file: string, page = "compilers.md"): string {
  const codes = [...sectionOf(page, heading).matchAll(/^```(?:[jt]s\n\/\/ (\S+)|json)\n(.*?)^```$/gms)];
  const [, , code] =
    codes.find(([, name]) => (file.endsWith(".json") ? name === undefined : name === file)) ?? [];
  if (code === undefined) throw new Error(`docs/${page} has no ${file} for ${heading}`);
  return code;
}

/** Returns the first code in a language under a heading of a page. */
export function fencedUnder(heading: string, language: string, page: string): string {
  const [, code] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "ms").exec(sectionOf(page, heading)) ?? [];
  if (code === undefined) throw new Error(`docs/${page} has no ${language} for ${heading}`);
  return code;
}

/** Returns the configuration without Lockweave's plugin. */
export function unwoven({ file, text }: Recipe): Recipe {
  const without = text.replace("lockweave()", "");
  if (without === text) throw new Error(`${file} has no lockweave()`);
  return { file, text: without };
}
