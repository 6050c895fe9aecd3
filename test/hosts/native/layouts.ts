import { mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { TYPESCRIPT_7 } from "../../cli/tools";
import { installed, packagesIn, type SetName } from "../installed";
import { PACKAGE, type Project } from "../project";

type Kind = "typescript@6" | "typescript@7" | "@typescript/typescript6";

/** The versions of TypeScript in a project, by package name. */
export type Layout = Readonly<Record<string, Kind>>;

/** The layout that the TypeScript team recommends for the transition. Its `tsc` is that of TypeScript 7. */
export const RECOMMENDED: Layout = {
  "@typescript/native": "typescript@7",
  typescript: "@typescript/typescript6",
};

const VERSIONS: Readonly<Record<Kind, string>> = {
  "typescript@6": "npm:typescript@6.0.3",
  "typescript@7": "npm:typescript@7.0.2",
  "@typescript/typescript6": "npm:@typescript/typescript6@6.0.2",
};

/** Installs the layout with npm. */
export async function installLayout(project: Project, layout: Layout, set: SetName): Promise<void> {
  const names = packagesIn(set);
  const modules = await installed(set);
  await rm(project.path("node_modules/typescript"), { recursive: true });
  for (const name of [...names, ".bin"]) await link(project, name, join(modules, name));
  await writeDependencies(project, layout);
}

/** Creates the files of the layout without npm. */
export async function layOut(project: Project, layout: Layout, tsc?: string): Promise<void> {
  await rm(project.path("node_modules/typescript"), { recursive: true });
  for (const [name, kind] of Object.entries(layout)) {
    if (kind === "@typescript/typescript6") await writeTypeScript6(project, name);
    else await link(project, name, directoryOf(kind));
  }
  if (tsc !== undefined) await link(project, ".bin/tsc", project.path(`node_modules/${tsc}/bin/tsc`));
  await writeDependencies(project, layout);
}

async function link(project: Project, name: string, target: string): Promise<void> {
  const path = project.path(join("node_modules", name));
  await mkdir(dirname(path), { recursive: true });
  await symlink(target, path);
}

async function writeDependencies(project: Project, layout: Layout): Promise<void> {
  const manifest = JSON.parse(await project.read("package.json")) as object;
  const devDependencies = Object.fromEntries(
    Object.entries(layout).map(([name, kind]) => [name, VERSIONS[kind]]),
  );
  await project.write({ "package.json": JSON.stringify({ ...manifest, devDependencies }, undefined, 2) });
}

function directoryOf(kind: "typescript@6" | "typescript@7"): string {
  return kind === "typescript@6" ? join(PACKAGE, "node_modules/typescript") : TYPESCRIPT_7;
}

/** Writes the files of the package, which loads TypeScript 6 from its dependency `@typescript/old`. */
async function writeTypeScript6(project: Project, name: string): Promise<void> {
  const manifest = {
    name: "@typescript/typescript6",
    version: "6.0.2",
    main: "./lib/typescript.js",
    bin: { tsc6: "./bin/tsc6" },
  };
  await project.write({
    [`node_modules/${name}/package.json`]: JSON.stringify(manifest),
    [`node_modules/${name}/lib/typescript.js`]: 'module.exports = require("@typescript/old");\n',
    [`node_modules/${name}/lib/tsc.js`]: 'require("@typescript/old/lib/tsc.js");\n',
    [`node_modules/${name}/bin/tsc6`]: '#!/usr/bin/env node\nrequire("../lib/tsc.js");\n',
  });
  await link(project, "@typescript/old", directoryOf("typescript@6"));
}
