import { basename } from "node:path";
import type { Draft } from "./draft";
import { CODE, type Project } from "./project";

/** The file of an application that runs before the server handles requests. */
export interface Startup {
  /** Its possible paths without an extension. */
  readonly places: readonly [string, ...string[]];
  /** The extension in TypeScript, if it is not `ts`. */
  readonly extension?: string;
  /** Returns the text of a new file, in TypeScript and in JavaScript. Without it, `init` does not create the file. */
  text?(configureCall: string): string;
  /** The function of the file in which to call `configure()`, if it is not the top of the file. */
  readonly within?: string;
  /** The command that creates the file. */
  readonly creation?: string;
  /** Whether the root module of this file imports `LockModule`, which calls `configure()`. */
  readonly hasModules?: boolean;
  /** Returns this file for each application in the project. Without applications, `places` applies. */
  ofApplications?(project: Project): readonly string[];
}

/**
 * Creates the file in the first place, unless it exists in any place, or another file already calls `configure()`. A file with a client would
 * have to import it, so the user writes that file.
 */
export function createStartup(draft: Draft, project: Project, startup: Startup): void {
  if (
    startup.text === undefined ||
    draft.store.argumentFromEnvironment === undefined ||
    existing(project, startup) !== undefined ||
    configuringFile(project) !== undefined
  )
    return;
  draft.create(newFile(project, startup), startup.text(configureCall(draft)));
}

/** Returns the call of `configure()` in a file that runs before the server handles requests. */
export function configureCall({ store }: Draft): string {
  return `configure(${store.argumentFromEnvironment ?? store.argument});`;
}

/** Returns the file that `init` created to call `configure()`. */
export function createdStartup({ changes }: Draft, startup: Startup): string | undefined {
  return [...changes.keys()].find((file) => isOneOf(startup, file));
}

/** Returns the file in which to call `configure()`, as a phrase. Each application needs a call. */
export function placeOf(project: Project, startup: Startup): string {
  const ofApplications = startup.ofApplications?.(project) ?? [];
  if (ofApplications.length > 0) return ofApplications.join(" and ");
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
  return project.codeFiles().find((file) => isOneOf(startup, file));
}

function isOneOf({ places }: Startup, file: string): boolean {
  return places.some((place) => CODE.test(file) && file.replace(CODE, "") === place);
}

/** Returns the source file that calls `configure()` of Lockweave, or that imports its module for NestJS. */
export function configuringFile(project: Project): string | undefined {
  return project.codeFiles().find((file) => {
    const text = project.read(file) ?? "";
    return importsLockModule(text) || (/["']lockweave["']/.test(text) && /\bconfigure\s*\(/.test(text));
  });
}

/** Returns how the file configures locks, as the end of a sentence about it. */
export function howItConfigures(project: Project, file: string): string {
  return importsLockModule(project.read(file) ?? "") ? "imports `LockModule`" : "calls `configure()`";
}

function importsLockModule(text: string): boolean {
  return /["']lockweave\/nest["']/.test(text) && /\bLockModule\s*\.\s*forRoot/.test(text);
}

/** Returns where to import the file that calls `configure()`, as a phrase, or `undefined` if the file that runs first names it. */
export function placeOfImport(project: Project, startup: Startup, file: string): string | undefined {
  const first = existing(project, startup);
  const name = basename(file).replace(CODE, "");
  if (first === file || (first !== undefined && project.read(first)?.includes(name) === true))
    return undefined;
  const { within } = startup;
  return `${within === undefined ? "" : `\`${within}\` of `}${placeOf(project, startup)}`;
}
