import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Draft } from "./draft";
import type { Project } from "./project";

/** The file of an application that runs before the server handles requests. */
export interface Startup {
  /** Its possible paths without an extension. */
  readonly places: readonly [string, ...string[]];
  /** The extension in TypeScript, if it is not `ts`. */
  readonly extension?: string;
  /** The text of a new file, in TypeScript and in JavaScript. Without it, `init` does not create the file. */
  readonly text?: string;
  /** The command that creates the file. */
  readonly creation?: string;
}

const CODE = /\.[cm]?[jt]sx?$/;
const SOURCES = ["src", "server", "app", "lib"];

/** Creates the file in the first place, unless it exists in any place, or another file already calls `configure()`. */
export function createStartup(draft: Draft, project: Project, startup: Startup): void {
  const { text } = startup;
  if (text === undefined || existing(project, startup) !== undefined || callsConfigure(project)) return;
  draft.create(newFile(project, startup), text);
}

/** Returns the file that `init` created to call `configure()`. */
export function createdStartup({ changes }: Draft, startup: Startup): string | undefined {
  return [...changes.keys()].find((file) => isOneOf(startup, file));
}

/** Returns the file in which to call `configure()`, as a phrase. */
export function placeOf(project: Project, startup: Startup): string {
  const file = existing(project, startup);
  if (file !== undefined) return file;
  const { creation } = startup;
  const how = creation === undefined ? "" : `, which \`${project.running(creation)}\` creates`;
  return newFile(project, startup) + how;
}

function newFile({ isTypeScript }: Project, { places: [place], extension = "ts" }: Startup): string {
  return `${place}.${isTypeScript ? extension : extension.replace("t", "j")}`;
}

function existing(project: Project, startup: Startup): string | undefined {
  return codeFiles(project).find((file) => isOneOf(startup, file));
}

function isOneOf({ places }: Startup, file: string): boolean {
  return places.some((place) => CODE.test(file) && file.replace(CODE, "") === place);
}

/** Whether a source file calls `configure()` of Lockweave. The first lock does, but it is not part of the application. */
export function callsConfigure(project: Project): boolean {
  return codeFiles(project).some((file) => {
    const text = /(?:^|\/)first-lock\.\w+$/.test(file) ? "" : (project.read(file) ?? "");
    return /["']lockweave["']/.test(text) && /\bconfigure\s*\(/.test(text);
  });
}

/** Returns the source files in the usual directories, with slashes. */
function codeFiles(project: Project): string[] {
  return SOURCES.filter((dir) => existsSync(project.path(dir))).flatMap((dir) =>
    readdirSync(project.path(dir), { recursive: true, encoding: "utf8" })
      .filter((file) => CODE.test(file) && !/(?:^|[\\/])node_modules[\\/]/.test(file))
      .map((file) => join(dir, file).replaceAll("\\", "/")),
  );
}
