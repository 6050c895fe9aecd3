import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ConfigText } from "./config-text";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import { addPlugin, addToList, pluginLines } from "./plugin-lists";
import type { Project } from "./project";

const FROM = "lockweave/vite";
const LISTS = [["plugins"]];

/**
 * Adds the plugin to the Vitest projects that do not inherit it from the root: projects with their own configuration, inline projects with
 * `extends: false`, and before Vitest 5 also inline projects without `extends`.
 */
export function addToVitestProjects(draft: Draft, project: Project, file: string): void {
  const named: string[] = [];
  const isDone = draft.edit(file, (config) =>
    addToInlineProjects(config, draft.text(file) ?? "", named, inheritsByDefault(project)),
  );
  const configs = named.map((name) => configsOf(project, name));
  if (!isDone || configs.includes(undefined)) {
    draft.byHand.push({
      file,
      why: "Lockweave does not understand the Vitest projects in it. Add to each project that does not extend the root",
      lines: pluginLines(FROM, LISTS, "import"),
    });
  }
  for (const own of configs.flatMap((some) => some ?? [])) {
    if (!addPlugin(draft, own, FROM, LISTS)) {
      draft.byHand.push({ file: own, why: NOT_UNDERSTOOD, lines: pluginLines(FROM, LISTS, "import") });
    }
  }
}

/**
 * Adds the plugin to the inline projects.
 *
 * @param named receives the paths of the projects that are not inline
 * @param inherits whether a project without `extends` inherits the plugins
 * @returns whether the list of projects was understood
 */
function addToInlineProjects(config: ConfigText, text: string, named: string[], inherits: boolean): boolean {
  const root = config.root();
  const test = root && config.objectAt(root, "test");
  if (test === undefined || config.value(test, "projects") === undefined) return true;
  const list = config.arrayAt(test, "projects");
  const isImported = /\b(?:import|const) lockweave\b/.test(text);
  for (const element of list?.elements ?? []) {
    const own = config.asObject(element);
    const code = config.textOf(element);
    if (own === undefined) {
      if (!/^(["'])[^"']*\1$/.test(code)) return false;
      named.push(code.slice(1, -1));
      continue;
    }
    const base = config.value(own, "extends");
    const isInheriting = base === undefined ? inherits : config.textOf(base) !== "false";
    if (isInheriting || /\blockweave\(/.test(code)) continue;
    if (!isImported || !addToList(config, own, ["plugins"])) return false;
  }
  return list !== undefined;
}

/** Whether an inline project without `extends` inherits the plugins of the root, as since Vitest 5. */
function inheritsByDefault(project: Project): boolean {
  const version = project.manifestOf("vitest")?.manifest["version"];
  return typeof version === "string" && Number.parseInt(version, 10) >= 5;
}

/** Returns the configurations of a path in `test.projects`, or `undefined` if the path is not understood. */
function configsOf(project: Project, path: string): string[] | undefined {
  const plain = path.replace(/^\.\//, "");
  const dirs = plain.endsWith("/*") ? directoriesIn(project, plain.slice(0, -2)) : [plain];
  if (plain.startsWith("!") || dirs.some((dir) => dir.includes("*"))) return undefined;
  const configs = dirs.map((dir) => configIn(project, dir));
  return configs.every((config) => config !== undefined) ? configs : undefined;
}

function directoriesIn(project: Project, dir: string): string[] {
  const full = project.path(dir);
  if (!existsSync(full)) return [];
  return readdirSync(full, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${dir}/${name}`);
}

function configIn(project: Project, path: string): string | undefined {
  const full = project.path(path);
  if (!existsSync(full)) return undefined;
  if (statSync(full).isFile()) return path;
  const files = readdirSync(full);
  const own = ["vitest.config", "vite.config"]
    .map((name) => files.find((file) => file.startsWith(`${name}.`)))
    .find((file) => file !== undefined);
  return own === undefined ? undefined : join(path, own).replaceAll("\\", "/");
}
