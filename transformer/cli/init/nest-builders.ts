import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "../../terminal/usage-error";
import type { NestOutput } from "../../verify/fixes";
import { Project } from "./project";
import type { Startup } from "./startup";

/** The entry file of NestJS's starter, or of each application of a monorepo. `init` does not change it. */
export const NEST_STARTUP: Startup = { places: ["src/main"], hasModules: true, ofApplications: entryFiles };

// The builder that NestJS's command runs. The configuration or a script chooses it, for the whole project or for one application.

export type NestBuilder = "tsc" | "webpack" | "swc" | "rspack";

/** The part of NestJS's configuration that is read here, of the project or of one application of a monorepo. */
interface Settings {
  readonly type?: "application" | "library";
  readonly root?: string;
  readonly sourceRoot?: string;
  readonly exec?: string;
  readonly entryFile?: string;
  readonly compilerOptions?: {
    readonly webpack?: boolean;
    readonly typeCheck?: boolean;
    readonly builder?:
      NestBuilder | { readonly type?: NestBuilder; readonly options?: Readonly<Record<string, unknown>> };
  };
}

/** The way in which NestJS's command builds a project. */
export interface NestBuilds {
  /** The configuration file. It may not exist. */
  readonly file: string;
  readonly builders: ReadonlySet<NestBuilder>;
  /** The settings of the project, and of each application and library of a monorepo. */
  readonly settings: readonly Settings[];
  /** Whether the project is a monorepo. Its applications are built one by one. */
  readonly isMonorepo: boolean;
  /** Whether TypeScript checks the sources that swc compiles. */
  readonly checksTypes: boolean;
  /** The evidence for a builder: the configuration file, or a script. */
  evidence(builder: NestBuilder): string;
}

/** Returns `undefined` if NestJS does not build the project. */
export function nestBuilds(project: Project): NestBuilds | undefined {
  const found = ["nest-cli.json", ".nest-cli.json"].find((name) => project.files.includes(name));
  if (found === undefined && !project.dependsOn("@nestjs/core")) return undefined;
  const file = found ?? "nest-cli.json";
  const settings = settingsIn(project.read(file));
  const [own = {}, ...applications] = settings;
  const general = builderOf(own) ?? "tsc";
  const configured = (applications.length === 0 ? [own] : applications).map(
    (one) => builderOf(one) ?? general,
  );
  const scripts = project.scripts.filter((script) => COMMAND.test(script));
  const named = scripts.map(builderNamedIn);
  // If each script names a builder, the configured one never runs.
  const usual = named.length === 0 || named.includes(undefined) ? configured : [];
  return {
    file,
    builders: new Set([...named.filter((one) => one !== undefined), ...usual]),
    settings,
    isMonorepo: applications.length > 0,
    checksTypes:
      settings.some(({ compilerOptions }) => compilerOptions?.typeCheck === true) ||
      scripts.some((script) => script.includes("--type-check")),
    evidence(builder) {
      const script = scripts[named.indexOf(builder)];
      if (!usual.includes(builder) && script !== undefined) return `\`${script}\` in a script`;
      return found ?? "`@nestjs/core` in package.json";
    },
  };
}

/** Returns the builder that writes the output if NestJS builds the nearest package of the directory. */
export function nestOutputOf(directory: string): NestOutput | undefined {
  let dir = directory;
  while (!existsSync(join(dir, "package.json"))) {
    if (dir === dirname(dir)) return undefined;
    dir = dirname(dir);
  }
  try {
    const { builders } = nestBuilds(new Project(dir)) ?? {};
    if (builders === undefined) return undefined;
    return (["tsc", "webpack", "swc", "rspack"] as const).find((one) => builders.has(one));
  } catch (error) {
    if (error instanceof UsageError) return undefined; // The package.json is not valid.
    throw error;
  }
}

/** Returns the entry files of the applications of a monorepo. */
function entryFiles(project: Project): string[] {
  const [, ...parts] = nestBuilds(project)?.settings ?? [];
  return parts
    .filter(({ type }) => type !== "library")
    .map(({ root = "", sourceRoot = `${root}/src`, entryFile = "main" }) => `${sourceRoot}/${entryFile}.ts`)
    .filter((file) => existsSync(project.path(file)));
}

/** Returns the Jest configurations of the end-to-end tests in a monorepo. A script names only the first application's. */
export function endToEndConfigs(project: Project): string[] {
  const [, ...parts] = nestBuilds(project)?.settings ?? [];
  return parts
    .map(({ root = "" }) => `${root}/test/jest-e2e.json`)
    .filter((file) => existsSync(project.path(file)));
}

const COMMAND = /(?<![\w./@:-])nest\s+(?:build|start)\b/;

function builderNamedIn(script: string): NestBuilder | undefined {
  const [, name] = /\s(?:-b|--builder)[\s=]+["']?(tsc|webpack|swc|rspack)\b/.exec(script) ?? [];
  if (name !== undefined) return name as NestBuilder;
  return /\s--webpack(?=\s|$)/.test(script) ? "webpack" : undefined;
}

function builderOf({ compilerOptions = {} }: Settings): NestBuilder | undefined {
  const { webpack, builder } = compilerOptions;
  if (webpack === true) return "webpack";
  return typeof builder === "object" ? builder.type : builder;
}

/** Returns the values of an option of a builder, such as the path of its own configuration. */
export function builderOptions({ settings }: NestBuilds, builder: NestBuilder, option: string): string[] {
  const values = settings.flatMap(({ compilerOptions: { builder: named } = {} }) =>
    typeof named === "object" && named.type === builder ? [named.options?.[option]] : [],
  );
  return [...new Set(values.filter((value) => typeof value === "string"))];
}

/** Returns the settings of the project, and those of its applications. NestJS itself accepts no comments in them. */
function settingsIn(text: string | undefined): readonly Settings[] {
  try {
    const own = Object(JSON.parse(text ?? "{}")) as Settings & { projects?: Record<string, Settings> };
    return [own, ...Object.values(own.projects ?? {})];
  } catch {
    return [{}];
  }
}
