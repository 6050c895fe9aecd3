import { fileWeaver, shown, type Finding, type PluginOptions, type WovenFile } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS, tagsInComponent } from "./components";
import { tagsLostFrom } from "./lost-comments";
import { INSTALLED, OTHER_FILES, pathOf, shortPath, SOURCE_FILES, sourceFileOf } from "./source-files";

// Vite, Rollup and Rolldown take plugins of one kind. These are the parts of it that are used here, in words of our
// own: who has installed one of the three need not have the types of the other two.

/** What is wrong, as these hosts show it. */
interface Log {
  readonly message: string;
  readonly id: string;
  readonly loc: { readonly file: string; readonly line: number; readonly column: number };
  readonly frame: string;
}

interface TransformContext {
  warn(log: Log): void;
  /** Throws. */
  error(log: Log): never;
}

interface Plugin {
  readonly name: string;
  /** To Vite: before its own transform, which takes the comments away. */
  readonly enforce: "pre";
  readonly transform: {
    /** The same to Rollup and Rolldown. */
    readonly order: "pre";
    readonly filter: { readonly id: { readonly include: RegExp[]; readonly exclude: RegExp[] } };
    handler(
      this: TransformContext,
      text: string,
      id: string,
    ): { readonly code: string; readonly map: WovenFile["map"] } | undefined;
  };
}

/**
 * Weaves what Vite, Vitest, Rollup or Rolldown builds.
 *
 * @throws {TypeError} when the options are none
 */
function lockweave(options?: PluginOptions): Plugin {
  const weave = fileWeaver(parser(), options);
  return {
    name: "lockweave",
    enforce: "pre",
    transform: {
      order: "pre",
      filter: { id: { include: [SOURCE_FILES, COMPONENTS], exclude: [...OTHER_FILES] } },
      handler(text, id) {
        const lost = COMPONENTS.test(id) && !INSTALLED.test(id) ? tagsInComponent(text) : [];
        if (lost[0] !== undefined) this.error(logOf(id, lost, lost[0], "error"));
        const fileName = sourceFileOf(id); // Asked again: older hosts do not know the filter.
        // What a host knows with a query need not be the file: a worker's, say, is what starts it.
        if (fileName === id) {
          for (const lostTag of tagsLostFrom(id, text)) this.warn(logOf(id, [lostTag], lostTag, "warning"));
        }
        const woven = fileName === undefined ? undefined : weave(fileName, text);
        if (woven === undefined) return undefined;
        const { code, map, errors, warnings } = woven;
        for (const warning of warnings) this.warn(logOf(id, [warning], warning, "warning"));
        const [first] = errors;
        if (first !== undefined) this.error(logOf(id, errors, first, "error"));
        return { code, map };
      },
    },
  };
}

/** Several in one: at an error these hosts stop. */
function logOf(id: string, findings: readonly Finding[], first: Finding, kind: string): Log {
  const file = pathOf(id);
  const said = findings.map((finding) => shown(shortPath(file), finding, kind));
  const loc = { file, line: first.line, column: first.column };
  return { message: said.join("\n"), id, loc, frame: frameOf(first) };
}

/** The line, and below it marks under the words. */
function frameOf({ line, column, length, lineText }: Finding): string {
  const margin = `${line} | `;
  const before = `${" ".repeat(margin.length - 2)}| ${lineText.slice(0, column).replaceAll(/[^\t]/g, " ")}`;
  return `${margin}${lineText}\n${before}${"^".repeat(Math.max(1, Math.min(length, lineText.length - column)))}`;
}

export = lockweave;
