import { existsSync, readdirSync } from "node:fs";
import { dirname, relative, sep } from "node:path";
import type { Draft } from "./draft";
import type { Project } from "./project";

// The projects of an Nx workspace. They have settings of their own, to which no script at the root points.

/** Returns the directories of the projects to which the tsconfig.json at the root refers. */
function nxProjects(project: Project): string[] {
  if (!project.files.includes("nx.json")) return [];
  const dirs = project
    .tsconfigs()
    .flatMap(([own]) => (own === undefined ? [] : [relative(project.dir, dirname(own.path))]))
    .filter((dir) => dir !== "" && !dir.startsWith(".."));
  return [...new Set(dirs.map((dir) => dir.split(sep).join("/")))];
}

/** Returns the Jest configurations of the projects. The one at the root only lists them. */
export function jestConfigs(project: Project): string[] {
  return nxProjects(project).flatMap((dir) =>
    readdirSync(project.path(dir))
      .filter((file) => /^jest\.config\.[cm]?[jt]s$/.test(file))
      .map((file) => `${dir}/${file}`),
  );
}

interface EsbuildTarget {
  readonly executor?: string;
  readonly options?: { readonly esbuildConfig?: string; readonly esbuildOptions?: object };
}

/**
 * Creates an esbuild configuration with the plugin for each project that Nx builds with esbuild. The user refers to it, because Nx accepts
 * `esbuildConfig` only without `esbuildOptions`, which any configuration of the target may have.
 */
export function setUpEsbuild(draft: Draft, project: Project): void {
  for (const dir of nxProjects(project)) {
    for (const name of ["package.json", "project.json"]) {
      const file = `${dir}/${name}`;
      const target = esbuildTarget(project.read(file));
      if (target !== undefined) setUpTarget(draft, project, file, target);
    }
  }
}

function setUpTarget(draft: Draft, project: Project, file: string, { options = {} }: EsbuildTarget): void {
  const own = options.esbuildConfig;
  if (own !== undefined && existsSync(project.path(own))) {
    if (project.read(own)?.includes("lockweave/esbuild") === true) return;
    draft.byHand.push({
      file: own,
      why: "Nx builds with esbuild. Add the plugin",
      lines: ['plugins: [require("lockweave/esbuild")(), ...]'],
    });
    return;
  }
  const created = `${dirname(file)}/esbuild.config.cjs`;
  if (draft.text(created) === undefined) {
    const settings = JSON.stringify(options.esbuildOptions ?? {}, undefined, 2)
      .slice(1, -1)
      .trimEnd();
    const given = settings === "" ? "" : `${settings},`;
    draft.create(
      created,
      `const lockweave = require("lockweave/esbuild");\n\nmodule.exports = {${given}\n  plugins: [lockweave()],\n};\n`,
    );
  }
  draft.byHand.push({
    file,
    why: "Nx builds with esbuild. In the target `build`, delete every `esbuildOptions`, and add to `options`",
    lines: [`"esbuildConfig": "${created}"`],
  });
}

/** Returns the target that runs esbuild, from a package.json or a project.json. */
function esbuildTarget(text: string | undefined): EsbuildTarget | undefined {
  if (text?.includes("@nx/esbuild:esbuild") !== true) return undefined;
  try {
    const { nx, targets } = JSON.parse(text) as { nx?: { targets?: Targets }; targets?: Targets };
    return Object.values(targets ?? nx?.targets ?? {}).find(
      ({ executor }) => executor === "@nx/esbuild:esbuild",
    );
  } catch {
    return undefined; // Nx reports invalid JSON.
  }
}

type Targets = Readonly<Record<string, EsbuildTarget>>;
