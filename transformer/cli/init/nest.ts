import { join } from "node:path";
import { addTransformer, patchTypeScript } from "./compilers";
import type { ConfigText } from "./config-text";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host } from "./host";
import { builderOptions, nestBuilds, NEST_STARTUP, type NestBuilds } from "./nest-builders";
import { addPlugin } from "./plugin-lists";
import type { Project } from "./project";
import { BY_HAND, changeScripts, commandFor, hides, notUnderstood } from "./scripts";

// NestJS with the builders that take no TypeScript plugins.

// ---- swc ------------------------------------------------------------------------------------------------

const NODE_WITH_HOOK = "node --import lockweave/register";

/** swc writes output with tags, and Lockweave's hook weaves it when the application starts. */
export const NEST_SWC: Host = {
  name: "NestJS with swc",
  evidence: (project) => evidence(project, "swc"),
  setUp(draft, project) {
    const builds = nestBuilds(project);
    if (builds === undefined) return;
    startWithHook(draft, builds);
    startWithHookInScripts(draft, project, builds);
    for (const file of OTHER_STARTS) reportOtherStart(draft, file, project, builds);
    for (const file of swcSettings(project)) keepTags(draft, file, project);
    if (!builds.checksTypes) return;
    addTransformer(draft, project);
    patchTypeScript(draft, project);
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "nest start"),
    about: "builds, and starts the application with its locks, which are woven at load time",
  }),
  startup: NEST_STARTUP,
  tryOut(project, file, dir) {
    const [settings = ".swcrc"] = swcSettings(project);
    const output = join(dir, "first-lock.js");
    // NestJS sets these, too. It sets the target only if the settings have none.
    const options = [
      `module.type=${project.isModule ? "es6" : "commonjs"}`,
      "jsc.parser.syntax=typescript",
      "jsc.parser.decorators=true",
      ...(/"target"/.test(project.read(settings) ?? "") ? [] : ["jsc.target=es2021"]),
    ].flatMap((option) => ["-C", option]);
    return [
      [project.bin("@swc/cli", "swc"), file, "-o", output, "--config-file", settings, ...options, "--quiet"],
      ["--import", "lockweave/register", output],
    ];
  },
};

/** Returns the files with swc's settings. They may not exist. */
function swcSettings(project: Project): string[] {
  const builds = nestBuilds(project);
  const named = builds === undefined ? [] : builderOptions(builds, "swc", "swcrcPath");
  return named.length === 0 ? [".swcrc"] : named;
}

/** Makes `nest start` run Node with the hook. */
function startWithHook(draft: Draft, { file, settings }: NestBuilds): void {
  if (draft.text(file) === undefined) draft.create(file, "{}\n");
  const isDone = draft.edit(file, (config) => {
    const root = config.root();
    if (root === undefined) return false;
    const projects = config.objectAt(root, "projects");
    const applications = (projects?.properties ?? []).flatMap(({ name }) =>
      projects !== undefined && name !== undefined && "text" in name
        ? [config.objectAt(projects, name.text)]
        : [],
    );
    for (const object of [root, ...applications]) {
      const exec = object && config.value(object, "exec");
      if (exec === undefined) continue;
      const [, node, rest = ""] = /^"(node)(?:\.exe)?((?:\s.*)?)"$/.exec(config.textOf(exec)) ?? [];
      if (rest.includes("lockweave/register")) continue;
      if (node === undefined) return false;
      config.replace(exec, `"${NODE_WITH_HOOK}${rest}"`);
    }
    if (settings[0]?.exec === undefined) config.addProperties(root, { exec: `"${NODE_WITH_HOOK}"` });
    return true;
  });
  if (!isDone) draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: [`"exec": "${NODE_WITH_HOOK}"`] });
}

function startWithHookInScripts(draft: Draft, project: Project, builds: NestBuilds): void {
  const output = outputPattern(project, builds);
  const left = changeScripts(draft, project, ({ program, rest }) => {
    if (rest.some((word) => word.endsWith("lockweave/register"))) return undefined;
    if (program === "nest" && rest[0] === "start") {
      const isOverridden = rest.some((word) => /^(?:-e|--exec|--no-shell)(?:=|$)/.test(word));
      return isOverridden && !rest.some((word) => word.includes("lockweave/register")) ? BY_HAND : undefined;
    }
    const isStart = rest.some((word) => output.test(word));
    if (program === "node" && isStart) return [NODE_WITH_HOOK, ...rest].join(" ");
    return isStart ? BY_HAND : hides("node", program, rest);
  });
  if (left.length === 0) return;
  draft.byHand.push({
    file: "package.json",
    why: notUnderstood(left, "start the application with"),
    lines: [`${NODE_WITH_HOOK} ...`],
  });
}

/** Files outside of package.json that may start the built application. */
const OTHER_STARTS = ["Dockerfile", "Procfile", "ecosystem.config.js", "ecosystem.config.cjs"];

function reportOtherStart(draft: Draft, file: string, project: Project, builds: NestBuilds): void {
  const text = project.read(file);
  if (text === undefined || text.includes("lockweave/register")) return;
  const start = text.split(/[\s"',[\]]+/).find((word) => outputPattern(project, builds).test(word));
  if (start === undefined) return;
  draft.byHand.push({
    file,
    why: "This file starts the application without Lockweave's hook. Start the application with",
    lines: [`${NODE_WITH_HOOK} ${start}`],
  });
}

/** Matches the path of the built entry file of an application. */
function outputPattern(project: Project, { settings }: NestBuilds): RegExp {
  const escaped = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
  const outDir = project.setting("outDir", project.mainConfig);
  const dir = typeof outDir === "string" ? outDir.replace(/^\.\//, "").replace(/\/$/, "") : "dist";
  const entries = ["main", ...settings.flatMap(({ entryFile }) => entryFile ?? [])].map(escaped);
  return new RegExp(
    `^['"]?(?:\\./|.*/)?${escaped(dir)}/(?:.*/)?(?:${entries.join("|")})(?:\\.[cm]?js)?['"]?$`,
  );
}

const SWC_SETTINGS = `{
  "$schema": "https://swc.rs/schema.json",
  "sourceMaps": true,
  "jsc": { "preserveAllComments": true }
}
`;

/** Makes swc keep all tags, and write source maps, with which the hook detects a tag that is lost nevertheless. */
function keepTags(draft: Draft, file: string, project: Project): void {
  if (draft.text(file) === undefined) {
    draft.create(file, SWC_SETTINGS);
    return;
  }
  const byHand = (why: string, line: string): void => void draft.byHand.push({ file, why, lines: [line] });
  const isDone = draft.edit(file, (config) => {
    const root = config.root();
    return root !== undefined && config.isWhole(root) && keepTagsIn(config, root);
  });
  if (!isDone) byHand(NOT_UNDERSTOOD, '"sourceMaps": true, "jsc": { "preserveAllComments": true }');
  if (/"mangle"\s*:\s*(?:true|\{)/.test(project.read(file) ?? "")) {
    byHand("swc renames the parameters that tags name. Turn that off", '"mangle": false');
  }
}

function keepTagsIn(config: ConfigText, root: NonNullable<ReturnType<ConfigText["root"]>>): boolean {
  const [maps, jsc] = [config.value(root, "sourceMaps"), config.value(root, "jsc")];
  const added = {
    ...(maps === undefined && { sourceMaps: "true" }),
    ...(jsc === undefined && { jsc: '{ "preserveAllComments": true }' }),
  };
  if (Object.keys(added).length > 0) config.addProperties(root, added);
  if (maps !== undefined && !/^(?:true|"inline")$/.test(config.textOf(maps))) config.replace(maps, "true");
  if (jsc === undefined) return true;
  const settings = config.objectAt(root, "jsc");
  if (settings === undefined) return false;
  const comments = config.value(settings, "preserveAllComments");
  if (comments === undefined) config.addProperties(settings, { preserveAllComments: "true" });
  else if (config.textOf(comments) !== "true") config.replace(comments, "true");
  return true;
}

// ---- rspack ---------------------------------------------------------------------------------------------

/** The builder rspack exists in NestJS 12 and later. */
export const NEST_RSPACK: Host = {
  name: "NestJS with rspack",
  evidence: (project) => evidence(project, "rspack"),
  setUp(draft, project) {
    const builds = nestBuilds(project);
    const named = builds === undefined ? [] : builderOptions(builds, "rspack", "configPath");
    const files = [...named, ...rspackConfigsInScripts(project)];
    for (const file of files.length === 0 ? ["rspack.config.js"] : new Set(files)) {
      if (project.read(file) === undefined) draft.create(file, rspackConfig(file, project));
      else addPluginToRspack(draft, file, project);
    }
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "nest build"),
    about: "builds with locks",
    output: "dist",
  }),
  isFramework: true,
  startup: NEST_STARTUP,
};

function rspackConfigsInScripts(project: Project): string[] {
  return project.scripts.flatMap((script) =>
    [...script.matchAll(/\bnest\s[^&|;]*?\s--rspackPath[\s=]+([\w./-]+)/g)].map(([, file = ""]) => file),
  );
}

/** Adds the plugin to a list that the configuration has. A new list would replace NestJS's own plugins. */
function addPluginToRspack(draft: Draft, file: string, project: Project): void {
  const hasList = /\bplugins\s*:\s*\[/.test(project.read(file) ?? "");
  if (hasList && addPlugin(draft, file, "lockweave/rspack", [["plugins"]])) return;
  if (draft.text(file)?.includes("lockweave/rspack") === true) return;
  draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: rspackConfig(file, project).trimEnd().split("\n") });
}

function rspackConfig(file: string, project: Project): string {
  const isModule = file.endsWith(".mjs") || (project.isModule && !file.endsWith(".cjs"));
  const start = isModule
    ? 'import lockweave from "lockweave/rspack";\n\nexport default'
    : 'const lockweave = require("lockweave/rspack");\n\nmodule.exports =';
  return `${start} (options) => ({
  ...options,
  plugins: [lockweave(), ...options.plugins],
});
`;
}

function evidence(project: Project, builder: "swc" | "rspack"): string | undefined {
  const builds = nestBuilds(project);
  return builds?.builders.has(builder) === true ? builds.evidence(builder) : undefined;
}
