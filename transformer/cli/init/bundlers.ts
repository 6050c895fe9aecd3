import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { NOT_UNDERSTOOD, type Draft } from "./draft";
import { FRAMEWORK_HOSTS, hasFramework } from "./frameworks";
import type { Host, Step } from "./host";
import type { LockStore } from "./lock-store";
import { NEST_RSPACK } from "./nest";
import { nestBuilds } from "./nest-builders";
import { addPlugin, addToLists, pluginLines, styleOf } from "./plugin-lists";
import type { Project } from "./project";
import { preloadInBun, runningInBun, runsInBun } from "./runtimes";
import { commandFor, commandOfFile } from "./scripts";
import { configureCall, configuringFile } from "./startup";
import { addToVitestProjects } from "./vitest-projects";

/** A host whose configuration is a module that exports an object with a list of plugins. */
interface PluginHost {
  readonly name: string;
  /** The name of the package and of the program. */
  readonly tool: string;
  readonly entry: string;
  /** Names of the configuration file without the extension. The first that exists is used. */
  readonly configs: readonly string[];
  readonly property: string;
  /** The module that exports `defineConfig`, for a new configuration. Without it, `init` does not create one. */
  readonly defineConfig?: string;
  /** For test runners, the package alone is evidence. Other packages may be installed for another tool. */
  readonly isForTests?: true;
  /** The arguments with which the tool builds or tests. */
  readonly args?: readonly string[];
  /**
   * Returns the program with its arguments that builds only the first lock, and its output. `undefined` if the command would build the configured entry
   * instead.
   */
  readonly buildAlone?: (
    lock: string,
    config: string,
  ) => readonly [command: string, output: string] | undefined;
  readonly build?: (project: Project, file: string, dir: string) => readonly Step[];
  /** Describes what is wrong with the output as the host is configured. */
  readonly warningFor?: (project: Project, config: string, { server }: LockStore) => string | undefined;
}

const PLUGIN_HOSTS: readonly PluginHost[] = [
  {
    name: "Vite",
    tool: "vite",
    args: ["build"],
    buildAlone: (lock, config) =>
      isLibrary(config) ? undefined : [`vite build --ssr ${lock}`, "dist/first-lock.js"],
    entry: "vite",
    configs: ["vite.config"],
    property: "plugins",
    defineConfig: "vite",
    build: (project, file, dir) => [
      isLibrary(project.read(project.config("vite.config") ?? "vite.config.mts") ?? "")
        ? ["--input-type=module", "--eval", viteBuildScript(file, dir)]
        : [project.bin("vite"), "build", "--ssr", file, "--outDir", dir, "--logLevel", "warn"],
      () => [builtProgram(dir)],
    ],
    warningFor: (project, config, { server }) =>
      /\b(?:ssr|external)\b/.test(config) || project.runs("vite\\s[^&|;]*--ssr")
        ? undefined
        : `for browsers, where ${server} clients cannot run. For a server, add \`build: { ssr: true }\` to its configuration`,
  },
  {
    name: "Vitest",
    tool: "vitest",
    args: ["run"],
    entry: "vite",
    configs: ["vitest.config", "vite.config"],
    property: "plugins",
    defineConfig: "vitest/config",
    isForTests: true,
  },
  {
    name: "tsdown",
    tool: "tsdown",
    buildAlone: (lock) => [`tsdown ${lock}`, "dist"],
    entry: "rolldown",
    configs: ["tsdown.config"],
    property: "plugins",
    defineConfig: "tsdown",
    build: (project, file, dir) => [[project.bin("tsdown"), file, "-d", dir], () => [builtProgram(dir)]],
  },
  {
    name: "tsup",
    tool: "tsup",
    buildAlone: (lock) => [`tsup ${lock}`, "dist"],
    entry: "esbuild",
    configs: ["tsup.config"],
    property: "esbuildPlugins",
    defineConfig: "tsup",
    build: (project, file, dir) => [[project.bin("tsup"), file, "-d", dir], () => [builtProgram(dir)]],
  },
  {
    name: "Rolldown",
    tool: "rolldown",
    args: ["-c"],
    buildAlone: (lock) => [`rolldown -c --input ${lock} -d dist/first`, "dist/first"],
    entry: "rolldown",
    configs: ["rolldown.config"],
    property: "plugins",
    build: (project, file, dir) => [
      [project.bin("rolldown"), "-c", project.config("rolldown.config") ?? "", "-d", dir, "--input", file],
      () => [builtProgram(dir)],
    ],
  },
  {
    name: "Rollup",
    tool: "rollup",
    args: ["-c"],
    buildAlone: (lock) => [`rollup -c -i ${lock} -d dist/first`, "dist/first"],
    entry: "rollup",
    configs: ["rollup.config"],
    property: "plugins",
    build: (project, file, dir) => [
      [project.bin("rollup"), "--silent", "-c", "-i", file, "-d", dir],
      () => [builtProgram(dir)],
    ],
  },
  {
    name: "webpack",
    tool: "webpack",
    buildAlone: (lock) => [`webpack --entry-reset --entry ./${lock} -o dist/first`, "dist/first"],
    entry: "webpack",
    configs: ["webpack.config"],
    property: "plugins",
    build: (project, file, dir) => [
      [project.bin("webpack-cli", "webpack"), "--entry-reset", "--entry", `./${file}`, "-o", dir],
      () => [builtProgram(dir)],
    ],
  },
  {
    name: "Rspack",
    tool: "rspack",
    args: ["build"],
    buildAlone: (lock) => [`rspack build --entry ./${lock} -o dist/first`, "dist/first"],
    entry: "rspack",
    configs: ["rspack.config"],
    property: "plugins",
  },
  {
    name: "Farm",
    tool: "farm",
    args: ["build"],
    entry: "vite",
    configs: ["farm.config"],
    property: "vitePlugins",
  },
];

/** Whether the configuration builds a library. Vite's command then builds the configured entry, whatever entry its arguments name. */
function isLibrary(config: string): boolean {
  return /\blib\s*:/.test(config);
}

function viteBuildScript(file: string, dir: string): string {
  const options = { build: { ssr: file, lib: false, outDir: dir }, logLevel: "warn" };
  return `import { build } from "vite"; await build(${JSON.stringify(options)});`;
}

function pluginHost({
  name,
  tool,
  entry,
  configs,
  property,
  defineConfig,
  isForTests,
  args = [],
  buildAlone,
  build,
  warningFor,
}: PluginHost): Host {
  return {
    name,
    ...(isForTests && { isForTests }),
    evidence(project) {
      if (tool === "vite" && hasFramework(project)) return undefined;
      if (tool === "rspack" && nestBuilds(project)?.builders.has("rspack") === true) return undefined;
      // Vitest also reads `vite.config`, so that file is no evidence of Vitest. Only the first name counts.
      return (
        project.config(configs[0] ?? "") ??
        (project.runs(tool) ? `\`${tool}\` in a script` : undefined) ??
        (isForTests && project.dependsOn(tool) ? `\`${tool}\` in package.json` : undefined)
      );
    },
    setUp(draft, project) {
      const from = `lockweave/${entry}`;
      for (const other of project.configsNamedTo(tool)) setUpPlugin(draft, other, from, property);
      const planned = configs.map((config) => `${config}.mts`).find((path) => draft.text(path) !== undefined);
      const file = project.config(...configs) ?? planned;
      if (file !== undefined) {
        setUpPlugin(draft, file, from, property);
        if (tool === "vitest") addToVitestProjects(draft, project, file);
      } else if (defineConfig === undefined) {
        draft.byHand.push({
          file: `${configs[0]}.mjs`,
          why: `${name} has no configuration file. Create one with`,
          lines: pluginLines(from, [[property]], "import"),
        });
      } else {
        draft.create(
          // `tsc` and `nest build` would compile a `.mts` next to the sources, and then write `dist/src/main.js` instead of `dist/main.js`.
          `${configs[0]}.${isForTests ? "mjs" : "mts"}`,
          `import lockweave from "${from}";
import { defineConfig } from "${defineConfig}";

export default defineConfig({
  ${property}: [lockweave()],
});
`,
        );
      }
    },
    next(project, draft, lock) {
      const command = commandFor(project, draft, tool, ...args);
      if (isForTests) return { command, about: "runs the tests with their locks; no file is written" };
      const file = project.config(...configs);
      const config = file === undefined ? "" : (draft.text(file) ?? "");
      const [first, output] = buildAlone?.(lock, config) ?? [];
      const where = first === undefined ? "" : `; \`${project.running(first)}\` shows ${lock} in ${output}`;
      const warning = warningFor?.(project, config, draft.store);
      return {
        command,
        about: `builds with locks${warning === undefined ? "" : `, but ${warning}`}${where}`,
      };
    },
    ...(build && { tryOut: build }),
  };
}

function setUpPlugin(draft: Draft, file: string, from: string, property: string): void {
  const style = styleOf(draft, file);
  if (addPlugin(draft, file, from, [[property]])) return;
  draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: pluginLines(from, [[property]], style) });
}

// ---- other bundlers -------------------------------------------------------------------------------------

const ESBUILD: Host = {
  name: "esbuild",
  evidence: (project) =>
    esbuildScript(project) ?? (project.runs("esbuild") ? "`esbuild` in a script" : undefined),
  setUp(draft, project) {
    const file = esbuildScript(project);
    const from = "lockweave/esbuild";
    const style = file === undefined ? "import" : styleOf(draft, file);
    const isDone =
      file !== undefined &&
      draft.edit(file, (config) => {
        if (draft.text(file)?.includes(from) === true) return true;
        const options = config.argumentOf(["build", "context"], "entryPoints");
        return options !== undefined && addToLists(config, options, [["plugins"]], from, style);
      });
    if (isDone) return;
    draft.byHand.push({
      file: file ?? "esbuild.config.mjs",
      why:
        file === undefined
          ? "esbuild takes plugins only in a script, not on its command line. Create one with"
          : /\bbuildSync\(/.test(draft.text(file) ?? "")
            ? "`buildSync` takes no plugins. Replace it with `await build`, and add"
            : NOT_UNDERSTOOD,
      lines: pluginLines(from, [["plugins"]], style),
    });
  },
  next: (project, draft) => ({
    command: commandOfFile(project, draft, "node", esbuildScript(project) ?? "esbuild.config.mjs"),
    about: "builds your entry points with locks",
  }),
  // The project's own script builds its own entry points. So this runs the plugin with the installed esbuild instead.
  tryOut: (_, file, dir) => [
    [
      "--input-type=module",
      "--eval",
      `import { build } from "esbuild";
import lockweave from "lockweave/esbuild";
await build({
  entryPoints: [${JSON.stringify(file)}],
  bundle: true,
  platform: "node",
  packages: "external",
  outdir: ${JSON.stringify(dir)},
  outExtension: { ".js": ".cjs" },
  logLevel: "warning",
  plugins: [lockweave()],
});`,
    ],
    () => [builtProgram(dir)],
  ],
};

/** Finds the script that runs esbuild, by its usual names or by the scripts in package.json. */
function esbuildScript(project: Project): string | undefined {
  const named = project.config("esbuild.config", "esbuild", "build");
  const run = project.scripts.flatMap((script) =>
    [...script.matchAll(/\bnode\s+([\w./-]+\.[cm]?js)\b/g)].map(([, file = ""]) => file.replace(/^\.\//, "")),
  );
  return [...(named === undefined ? [] : [named]), ...run].find((file) =>
    /["']esbuild["']/.test(project.read(file) ?? ""),
  );
}

const BUN: Host = {
  name: "Bun",
  evidence: (project) => bunScript(project) ?? runsInBun(project, undefined),
  setUp(draft, project) {
    const file = bunScript(project);
    if (runsInBun(project, file) !== undefined) preloadInBun(draft);
    if (file === undefined) return;
    const from = "lockweave/esbuild";
    const style = styleOf(draft, file);
    const isDone = draft.edit(file, (config) => {
      if (draft.text(file)?.includes(from) === true) return true;
      const options = config.argumentOf(["build"], "entrypoints");
      return options !== undefined && addToLists(config, options, [["plugins"]], from, style);
    });
    if (!isDone)
      draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: pluginLines(from, [["plugins"]], style) });
  },
  next(project, draft, lock) {
    const file = bunScript(project);
    if (file === undefined) return runningInBun(lock);
    return {
      command: commandOfFile(project, draft, "bun", file),
      about: "builds your entry points with locks",
    };
  },
};

function bunScript(project: Project): string | undefined {
  const names = ["build", "bun.build", "scripts/build"].flatMap((name) =>
    ["ts", "mts", "js", "mjs"].map((extension) => `${name}.${extension}`),
  );
  const run = project.scripts.flatMap((script) =>
    [...script.matchAll(/\bbun\s+(?:run\s+)?([\w./-]+\.[cm]?[jt]s)\b/g)].map(([, file = ""]) =>
      file.replace(/^\.\//, ""),
    ),
  );
  return [...run, ...names].find((file) => project.read(file)?.includes("Bun.build(") === true);
}

/** The rule for Turbopack. It lists all extensions, because Turbopack would silently drop the tags in files with any other one. */
const TURBOPACK = '{ rules: { "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}": { loaders: ["lockweave/loader"] } } }';

const NEXT_LINES = [
  'import lockweave from "lockweave/webpack";',
  'serverExternalPackages: ["lockweave"],',
  `turbopack: ${TURBOPACK},`,
  "webpack: (config) => {",
  "  config.plugins.push(lockweave());",
  "  return config;",
  "},",
];

const NEXT: Host = {
  name: "Next.js",
  evidence: (project) =>
    project.config("next.config") ?? (project.dependsOn("next") ? "`next` in package.json" : undefined),
  setUp(draft, project) {
    const file = project.config("next.config");
    if (file === undefined) draft.create("next.config.mjs", NEXT_CONFIG);
    else if (!changeNextConfig(draft, file)) {
      draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: NEXT_LINES });
    }
    if (configuringFile(project) !== undefined) return;
    const places = [
      "instrumentation.ts",
      "src/instrumentation.ts",
      "instrumentation.js",
      "src/instrumentation.js",
    ];
    const existing = places.find((path) => project.read(path) !== undefined);
    if (existing === undefined) {
      if (draft.store.argumentFromEnvironment === undefined) return;
      // Next.js only looks for the file next to `app` or `pages`.
      const dir = ["src/app", "src/pages"].some((path) => existsSync(project.path(path))) ? "src/" : "";
      draft.create(
        `${dir}instrumentation.${project.isTypeScript ? "ts" : "js"}`,
        instrumentation(project, configureInNext(draft)),
      );
    } else if (project.read(existing)?.includes("lockweave") !== true) {
      draft.byHand.push({
        file: existing,
        why: "The locks need their store when the server starts. In `register()`, write",
        lines: configureInNext(draft),
      });
    }
  },
  next: (project, draft) => ({
    command: commandFor(project, draft, "next build"),
    about: "builds with locks, under .next/server",
    output: ".next/server/**/*.js",
  }),
  isFramework: true,
  startup: { places: ["instrumentation", "src/instrumentation"], within: "register()" },
};

/** Returns the lines of `register()`. Next.js also calls it in its edge runtime, where Lockweave cannot run. */
function configureInNext(draft: Draft): readonly string[] {
  return [
    'if (process.env.NEXT_RUNTIME === "nodejs") {',
    '  const { configure } = await import("lockweave");',
    `  ${configureCall(draft)}`,
    "}",
  ];
}

/** Returns the file that Next.js runs when the server starts, before any request. */
function instrumentation(project: Project, lines: readonly string[]): string {
  const type = project.isTypeScript ? ": Promise<void>" : "";
  const body = lines.map((line) => `  ${line}\n`).join("");
  return `export async function register()${type} {\n${body}}\n`;
}

const NEXT_CONFIG = `import lockweave from "lockweave/webpack";

/** @type {import("next").NextConfig} */
export default {
  serverExternalPackages: ["lockweave"],
  turbopack: ${TURBOPACK},
  webpack: (config) => {
    config.plugins.push(lockweave());
    return config;
  },
};
`;

function changeNextConfig(draft: Draft, file: string): boolean {
  const style = styleOf(draft, file);
  return draft.edit(file, (config) => {
    if (draft.text(file)?.includes("lockweave/") === true) return true;
    const root = config.root();
    const isFree = (name: string): boolean => root !== undefined && config.value(root, name) === undefined;
    if (root === undefined || !config.isWhole(root) || !isFree("turbopack") || !isFree("webpack"))
      return false;
    const list = config.arrayAt(root, "serverExternalPackages");
    if (list !== undefined) config.addElement(list, '"lockweave"', "last");
    else if (!isFree("serverExternalPackages")) return false;
    config.addProperties(root, {
      ...(list === undefined && { serverExternalPackages: '["lockweave"]' }),
      turbopack: TURBOPACK,
      webpack: "(config) => {\n    config.plugins.push(lockweave());\n    return config;\n  }",
    });
    config.addImport("lockweave", "lockweave/webpack", style);
    return true;
  });
}

export const BUNDLERS: readonly Host[] = [
  NEXT,
  ...FRAMEWORK_HOSTS,
  NEST_RSPACK,
  ...PLUGIN_HOSTS.map((host) => pluginHost(host)),
  ESBUILD,
  BUN,
];

/** Returns the path of the built program, whose name depends on the bundler. */
function builtProgram(dir: string): string {
  const files = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.[cm]?js$/.test(file),
  );
  const named = ["first-lock.", "main."].map((start) =>
    files.find((file) => basename(file).startsWith(start)),
  );
  return join(dir, named.find((file) => file !== undefined) ?? files[0] ?? "main.js");
}
