import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host, NextStep, TryOut } from "./host";
import { NEST_STARTUP, nestBuilds } from "./nest-builders";
import { setUpEsbuild } from "./nx-projects";
import { TYPESCRIPT, type Project } from "./project";
import { BY_HAND, changeScripts, commandFor, hides, projectsOf } from "./scripts";
import { compilerOption, isPatchable, whyNotTspc } from "./typescripts";

const PLUGIN = '{ "transform": "lockweave/transformer", "transformProgram": true }';

/** Adds the plugin to each tsconfig.json, unless a tsconfig that it extends already has it. */
export function addTransformer(draft: Draft, project: Project): void {
  for (const chain of project.tsconfigs(...projectsOf(project))) {
    const [own] = chain;
    // A list in the extending tsconfig would replace the inherited one.
    const holder = chain.find(({ settings }) => "plugins" in settings) ?? chain.find(isInProject) ?? own;
    if (holder === undefined) continue;
    const file = nameIn(project, holder.path);
    const isDone = isInProject(holder) && draft.edit(file, (config) => addTransformerTo(config));
    if (!isDone && !draft.byHand.some((one) => one.file === file)) {
      draft.byHand.push({
        file,
        why: NOT_UNDERSTOOD,
        lines: ['"compilerOptions": {', `  "plugins": [${PLUGIN}]`, "}"],
      });
    }
  }

  function isInProject({ path }: { readonly path: string }): boolean {
    return path.startsWith(project.dir) && !path.includes("node_modules");
  }
}

function addTransformerTo(config: Parameters<Parameters<Draft["edit"]>[1]>[0]): boolean {
  const root = config.root();
  if (root === undefined) return false;
  const options = config.objectAt(root, "compilerOptions");
  if (options === undefined) {
    if (config.value(root, "compilerOptions") !== undefined) return false;
    config.addProperties(root, { compilerOptions: `{\n    "plugins": [${PLUGIN}]\n  }` });
    return true;
  }
  const plugins = config.arrayAt(options, "plugins");
  if (plugins === undefined) {
    if (config.value(options, "plugins") !== undefined) return false;
    config.addProperties(options, { plugins: `[${PLUGIN}]` });
    return true;
  }
  if (/"lockweave(?:\/transformer)?"/.test(config.textOf(plugins))) return true;
  config.addElement(plugins, PLUGIN, "last");
  return true;
}

/**
 * Creates tsconfig.json if there is none here or above, and no script runs the compiler in another way. Without the file, the compiler has neither
 * plugins nor settings that fit Node.
 */
function createConfig(draft: Draft, project: Project, plugin?: string): void {
  if (hasConfig(project.dir) || project.scripts.some((script) => /\btsc6?\b/.test(script))) return;
  const isAllInSrc = existsSync(project.path("src")) && !project.files.some((file) => TYPESCRIPT.test(file));
  const lines = [
    '"target": "es2022"',
    '"module": "nodenext"',
    '"strict": true',
    '"skipLibCheck": true',
    ...(project.has("@types/node") ? ['"types": ["node"]'] : []),
    `"rootDir": "${isAllInSrc ? "src" : "."}"`,
    '"outDir": "dist"',
    ...(plugin === undefined ? [] : [`"plugins": [${plugin}]`]),
  ];
  const include = isAllInSrc ? ',\n  "include": ["src"]' : "";
  draft.create(
    "tsconfig.json",
    `{\n  "compilerOptions": {\n    ${lines.join(",\n    ")}\n  }${include}\n}\n`,
  );
}

/** Whether this directory, or one above, has a tsconfig.json. Tools such as esbuild use the nearest one. */
function hasConfig(dir: string): boolean {
  return existsSync(join(dir, "tsconfig.json")) || (dir !== dirname(dir) && hasConfig(dirname(dir)));
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}

function nameIn(project: Project, path: string): string {
  return path.startsWith(project.dir) ? path.slice(project.dir.length + 1) : path;
}

// ---- tspc -----------------------------------------------------------------------------------------------

const TSPC: Host = {
  name: "tspc",
  evidence: (project) => (whyNotTspc(project) === undefined ? compilesByTsc(project) : undefined),
  setUp(draft, project) {
    draft.installDev("typescript@6", "ts-patch@3");
    createConfig(draft, project, PLUGIN);
    addTransformer(draft, project);
    const left = changeScripts(draft, project, ({ program, rest }) =>
      program === "tsc" ? ["tspc", ...rest].join(" ") : hides("tsc", program, rest),
    );
    reportScripts(draft, left, "tspc", "tsc");
  },
  next: (project, draft, lock) => compilingTo(project, lock, commandFor(project, draft, "tspc")),
  tryOut: compileWith((project) => project.bin("ts-patch", "tspc")),
};

const TYPESCRIPT_7: Host = {
  name: "TypeScript 7",
  evidence(project) {
    const why = whyNotTspc(project);
    const script = why === undefined ? undefined : compilesByTsc(project);
    return script === undefined || why === "" ? script : `${script}, and ${why}`;
  },
  setUp(draft, project) {
    createConfig(draft, project);
    const left = changeScripts(draft, project, ({ program, rest }) => {
      if (!/^tsc6?$/.test(program) || rest.includes("--noEmit")) return hides("tsc", program, rest);
      const compiler = compilerOption(project, program);
      const options = rest
        .join(" ")
        .replace(/(?<=^|\s)(?:-b|--build)(?=\s|$)(?:\s+(?=[\w.]))?/, (found) =>
          found.endsWith(" ") ? "-p " : "",
        );
      return /^\s*(?:(?:-w|--watch|(?:-p|--project)\s+[\w./-]+)\s*)*$/.test(options)
        ? ["lockweave build", ...compiler, options.trim()].join(" ").trim()
        : BY_HAND;
    });
    reportScripts(draft, left, "lockweave build", "tsc");
  },
  next: (project, draft, lock) => compilingTo(project, lock, commandFor(project, draft, "lockweave build")),
  tryOut: compileWith(() => join(__dirname, "main.js"), "build"),
};

function compilesByTsc(project: Project): string | undefined {
  const emits = project.setting("noEmit") !== true;
  const script = project.scripts.find(
    (text) => /(?<![\w./@:-])tsc6?(?![\w./:-])(?!.*--(?:noEmit|emitDeclarationOnly)\b)/.test(text) && emits,
  );
  return script === undefined ? undefined : `\`${script}\` in a script`;
}

function reportScripts(draft: Draft, left: readonly string[], tool: string, before: string): void {
  if (left.length === 0) return;
  draft.byHand.push({
    file: "package.json",
    why: `In the ${left.length === 1 ? "script" : "scripts"} ${left.map((name) => `\`${name}\``).join(", ")}, run \`${tool}\` instead of`,
    lines: [before],
  });
}

/** @param usual the tsconfig.json that the command uses, if it exists */
function compilingTo(project: Project, lock: string, command: string, usual?: string): NextStep {
  const output = outputOf(project, lock, usual);
  const where = output === undefined ? "" : `; ${lock} becomes ${output}`;
  return { command, about: `compiles with locks${where}` };
}

/** Returns the path to which the compiler writes the JavaScript of a file, or `undefined` if it writes none. */
function outputOf(project: Project, file: string, usual: string | undefined): string | undefined {
  const config =
    [...projectsOf(project).slice(0, 1), ...(usual === undefined ? [] : [usual])].find((path) =>
      existsSync(project.path(path)),
    ) ?? project.mainConfig;
  const setting = (name: string): unknown => project.setting(name, config);
  const [outDir, rootDir] = [setting("outDir"), setting("rootDir")];
  if (setting("noEmit") === true) return undefined;
  const emitted = file.replace(/ts$/, "js");
  if (typeof outDir !== "string") return emitted;
  // Before TypeScript 6, the default is the common root of all files, which only the compiler knows.
  const isCommon = rootDir === undefined && (project.typescript?.major ?? 6) < 6;
  const configDir = dirname(project.mainConfig);
  const root = typeof rootDir === "string" ? join(configDir, rootDir) : isCommon ? dirname(file) : configDir;
  return slashed(join(configDir, outDir, relative(root, emitted)));
}

/** Compiles only this file, with the settings of the project. */
function compileWith(compiler: (project: Project) => string, ...command: readonly string[]): TryOut {
  return (project, file, dir) => {
    const config = join(dir, "tsconfig.json");
    const compilerOptions = {
      rootDir: dirname(project.path(file)),
      outDir: dir,
      noEmit: false,
      noEmitOnError: false,
      composite: false,
      incremental: false,
      declaration: false,
      declarationMap: false,
      emitDeclarationOnly: false,
    };
    const { mainConfig } = project;
    const extended = existsSync(project.path(mainConfig)) ? { extends: `../${basename(mainConfig)}` } : {};
    const settings = {
      ...extended,
      compilerOptions,
      files: [project.path(file)],
      include: [],
      references: [],
    };
    writeFileSync(config, JSON.stringify(settings));
    const emitted = basename(file).replace(/ts$/, "js");
    return [[compiler(project), ...command, "-p", config], [join(dir, emitted)]];
  };
}

// ---- NestJS ---------------------------------------------------------------------------------------------

/** NestJS with the builders that run TypeScript itself. */
const NEST: Host = {
  name: "NestJS",
  evidence(project) {
    const builds = nestBuilds(project);
    const builder = (["tsc", "webpack"] as const).find((one) => builds?.builders.has(one) === true);
    return builder && builds?.evidence(builder);
  },
  setUp(draft, project) {
    addTransformer(draft, project);
    patchTypeScript(draft, project);
  },
  next(project, draft, lock) {
    const command = commandFor(project, draft, "nest build");
    const builds = nestBuilds(project);
    if (builds?.builders.has("webpack") === true) {
      return { command, about: "builds with locks", output: "dist" };
    }
    if (builds?.isMonorepo === true) return { command, about: "compiles with locks" };
    return compilingTo(project, lock, command, "tsconfig.build.json");
  },
  tryOut: compileWith((project) => project.bin("typescript", "tsc")),
  startup: NEST_STARTUP,
};

/** Makes the installed TypeScript weave, for users who cannot choose which compiler runs. */
export function patchTypeScript(draft: Draft, project: Project): void {
  if (!isPatchable(draft, project)) return;
  draft.installDev("ts-patch@3");
  patchOnInstall(draft, project);
}

/** Patches the installed TypeScript now, and after each installation. */
function patchOnInstall(draft: Draft, project: Project): void {
  const patch = "ts-patch install -s";
  const name = project.files.includes(".yarnrc.yml") ? "postinstall" : "prepare"; // Yarn 2 and later never run `prepare`.
  const isDone = draft.edit("package.json", (config) => {
    const root = config.root();
    if (root === undefined) return false;
    const scripts = config.objectAt(root, "scripts");
    const before = project.manifest.scripts?.[name];
    if (before?.includes("ts-patch install") === true) return true;
    if (scripts === undefined) config.addProperties(root, { scripts: `{\n    "${name}": "${patch}"\n  }` });
    else if (before === undefined) config.addProperties(scripts, { [name]: JSON.stringify(patch) });
    else {
      const value = config.value(scripts, name);
      if (value !== undefined) config.replace(value, JSON.stringify(`${patch} && ${before}`));
    }
    return true;
  });
  if (!isDone) {
    draft.byHand.push({ file: "package.json", why: NOT_UNDERSTOOD, lines: [`"${name}": "${patch}"`] });
  }
  if (project.isPnp) unplugTypeScript(draft, project);
  if (!isPatched(project)) {
    const [program = "npx", ...words] = project.packageManager.runner;
    draft.commands.push([program, ...words, "ts-patch", "install", "-s"]);
  }
}

/** Makes Yarn Plug'n'Play unpack TypeScript into the project. ts-patch cannot change an archive, and reports no error. */
function unplugTypeScript(draft: Draft, project: Project): void {
  if (project.manifestOf("typescript")?.path.includes(`.zip${sep}`) !== true) return;
  const unplugged = '{ "unplugged": true }';
  const isDone = draft.edit("package.json", (config) => {
    const root = config.root();
    if (root === undefined) return false;
    const all = config.objectAt(root, "dependenciesMeta");
    if (all !== undefined && config.value(all, "typescript") !== undefined) return false;
    if (all === undefined)
      config.addProperties(root, { dependenciesMeta: `{\n    "typescript": ${unplugged}\n  }` });
    else config.addProperties(all, { typescript: unplugged });
    return true;
  });
  // In CI, Yarn's default refuses to change the lock file.
  if (isDone) draft.commands.push(["yarn", "install", "--no-immutable"]);
  else {
    const lines = [`"dependenciesMeta": { "typescript": ${unplugged} }`];
    draft.byHand.push({ file: "package.json", why: NOT_UNDERSTOOD, lines });
  }
}

function isPatched(project: Project): boolean {
  const library = project.manifestOf("typescript")?.path.replace(/package\.json$/, "lib/typescript.js");
  return (
    library !== undefined && existsSync(library) && readFileSync(library, "utf8").includes("/// tsp-module:")
  );
}

// ---- Nx -------------------------------------------------------------------------------------------------

/** Nx runs `tsc --build` for each referenced project, without a script that shows it. */
const NX: Host = {
  name: "Nx",
  evidence: (project) =>
    project.files.includes("nx.json") && project.files.includes("tsconfig.json") ? "nx.json" : undefined,
  setUp(draft, project) {
    addTransformer(draft, project);
    patchTypeScript(draft, project);
    setUpEsbuild(draft, project);
  },
  next: (project, _, lock) => compilingTo(project, lock, project.running("nx run-many --target=build")),
  tryOut: compileWith((project) => project.bin("typescript", "tsc")),
};

export const COMPILERS: readonly Host[] = [NEST, NX, TSPC, TYPESCRIPT_7];

/** Returns the compiler of a project for which no other host was found. */
export function usualCompiler(project: Project): Host | undefined {
  if (!project.isCompiled) return undefined;
  return whyNotTspc(project) === undefined ? TSPC : TYPESCRIPT_7;
}
