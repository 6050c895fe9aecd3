import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { configFiles, projectsInOrder } from "../../hosts/native/config";
import {
  installedTypeScripts,
  typeScriptOfTsc,
  type InstalledTypeScript,
} from "../../hosts/native/installed";
import { parser } from "../../parser/parser";
import { packageByPnp } from "../../resolve/package-entry";
import { commandLine, packageManagerFor, type PackageManager } from "../workspace/package-manager";
import { UsageError } from "../../terminal/usage-error";

/** Matches the names of source files. */
export const CODE = /\.[cm]?[jt]sx?$/;
const SOURCES = ["src", "server", "app", "lib", "libs", "services", "utils"];
/** Matches files that call `configure()` for themselves alone: tests, and the example `first-lock.ts`. */
const NOT_IN_APPLICATION =
  /(?:^|\/)(?:node_modules|tests?|__tests__)\/|\.(?:test|spec)\.\w+$|(?:^|\/)first-lock\.\w+$/;
/** Matches the names of files with the settings of a tool. */
const SETTINGS = /\.config\.\w+$/;
/** Matches the names of files that are TypeScript. */
export const TYPESCRIPT = /(?<!\.d)\.[cm]?ts$/;

interface Manifest {
  readonly version?: string;
  readonly type?: string;
  readonly packageManager?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly [name: string]: unknown;
}

/** A project on disk. */
export class Project {
  readonly dir: string;
  readonly manifest: Manifest;
  /** The names of the files next to package.json. */
  readonly files: readonly string[];
  readonly scripts: readonly string[];

  /**
   * Reads package.json and the names of the files next to it.
   *
   * @throws {UsageError} if there is no valid package.json
   */
  constructor(dir: string) {
    this.dir = dir;
    const text = this.read("package.json");
    if (text === undefined)
      throw new UsageError("There is no package.json here. Fix: run this in the directory of the project.");
    try {
      this.manifest = JSON.parse(text) as Manifest;
    } catch {
      throw new UsageError("The package.json here is not valid JSON.");
    }
    this.files = readdirSync(dir);
    this.scripts = Object.values(this.manifest.scripts ?? {});
  }

  path(file: string): string {
    return join(this.dir, file);
  }

  read(file: string): string | undefined {
    const path = this.path(file);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  }

  /** Whether package.json lists the package. */
  dependsOn(name: string): boolean {
    const { dependencies = {}, devDependencies = {} } = this.manifest;
    return name in dependencies || name in devDependencies;
  }

  /** Whether the package is installed, or will be once the dependencies are installed. */
  has(name: string): boolean {
    return this.dependsOn(name) || this.manifestOf(name) !== undefined;
  }

  /** Returns the manifest of an installed package. */
  manifestOf(name: string): { readonly path: string; readonly manifest: Manifest } | undefined {
    const path = this.#installed(name);
    return path === undefined
      ? undefined
      : { path, manifest: JSON.parse(readFileSync(path, "utf8")) as Manifest };
  }

  /** Returns the script of a program that a package provides. */
  bin(name: string, program = name): string {
    const installed = this.manifestOf(name);
    const given = installed?.manifest["bin"];
    const all =
      typeof given === "string" ? { [program]: given } : (given as Record<string, string> | undefined);
    const script = all?.[program] ?? Object.values(all ?? {})[0] ?? program;
    return join(installed?.path ?? this.path("node_modules"), "..", script);
  }

  /**
   * Finds a configuration file next to package.json by its name without the extension. `vite.config` matches `vite.config.ts`,
   * `vite.config.mjs`, and so on.
   */
  config(...names: readonly string[]): string | undefined {
    return names
      .map((name) =>
        this.files.find((file) => /\.[cm]?[jt]s$/.test(file) && file.replace(/\.\w+$/, "") === name),
      )
      .find((file) => file !== undefined);
  }

  /** Whether a script in package.json runs the program. */
  runs(program: string): boolean {
    return this.scripts.some((script) => new RegExp(`(?<![\\w./@:-])${program}(?![\\w./:-])`).test(script));
  }

  /** Returns the configurations that scripts pass to the program with `--config`. */
  configsNamedTo(program: string): string[] {
    const named = this.scripts.flatMap((script) =>
      [
        ...script.matchAll(new RegExp(`(?<![\\w./@:-])${program}\\s[^&|;]*?--config[\\s=]+([\\w./-]+)`, "g")),
      ].map(([, file = ""]) => file.replace(/^\.\//, "")),
    );
    return [...new Set(named)].filter((file) => existsSync(this.path(file)));
  }

  /** The TypeScript of the project, or `undefined` if it has none. */
  get typescript():
    { readonly version: string; readonly major: number; readonly isTooOld: boolean } | undefined {
    const { dependencies = {}, devDependencies = {} } = this.manifest;
    const range = devDependencies["typescript"] ?? dependencies["typescript"];
    const version = this.manifestOf("typescript")?.manifest.version ?? range ?? "";
    // A range without a minor version, such as `^5`, stands for its newest one.
    const [, major = "", minor = "99"] = /(\d+)(?:\.(\d+))?/.exec(versionIn(version)) ?? [];
    if (major === "") return undefined;
    return { version, major: Number(major), isTooOld: Number(major) * 100 + Number(minor) < 509 };
  }

  /** Every installed TypeScript: `typescript`, and packages with other names. */
  get typescripts(): InstalledTypeScript[] {
    return installedTypeScripts(this.path("package.json"));
  }

  /** The TypeScript that `tsc` in a script runs. */
  get typescriptOfTsc(): InstalledTypeScript | undefined {
    return typeScriptOfTsc(this.path("package.json"));
  }

  /** Whether `typescript` is an alias of another package, such as `@typescript/typescript6`. ts-patch accepts no alias. */
  get isTypeScriptAliased(): boolean {
    const { dependencies = {}, devDependencies = {} } = this.manifest;
    const range = devDependencies["typescript"] ?? dependencies["typescript"] ?? "";
    const installed = this.typescripts.find(({ name }) => name === "typescript");
    return installed === undefined ? /^npm:(?!typescript@)/.test(range) : !installed.isOriginal;
  }

  /** The dependency that installs TypeScript 7 under another name. */
  get nativeAlias(): string | undefined {
    const { dependencies = {}, devDependencies = {} } = this.manifest;
    const all = Object.entries({ ...dependencies, ...devDependencies });
    return all.find(([, range]) => /^npm:typescript@\D*(?:[7-9]|\d\d)/.test(range))?.[0];
  }

  /** Whether the sources are TypeScript. */
  get isTypeScript(): boolean {
    if (this.isCompiled || this.hasOnly(/(?<!\.d)\.[cm]?tsx?$/)) return true;
    const files = [...this.files, ...this.scripts.flatMap((script) => script.split(/\s+/))];
    return files.some((file) => TYPESCRIPT.test(file) && !SETTINGS.test(file));
  }

  /** Whether there are sources, and all have such a name. Settings of tools do not count. */
  hasOnly(name: RegExp): boolean {
    const sources = this.codeFiles().filter((file) => !SETTINGS.test(file));
    return sources.length > 0 && sources.every((file) => name.test(file));
  }

  /** Returns the source files of the application at the top and in the usual directories, with slashes. */
  codeFiles(): string[] {
    const below = SOURCES.filter((dir) => existsSync(this.path(dir))).flatMap((dir) =>
      readdirSync(this.path(dir), { recursive: true, encoding: "utf8" }).map((file) =>
        join(dir, file).replaceAll("\\", "/"),
      ),
    );
    return [...this.files, ...below].filter((file) => CODE.test(file) && !NOT_IN_APPLICATION.test(file));
  }

  /** Whether TypeScript compiles the sources. Otherwise, Node may strip the types itself. */
  get isCompiled(): boolean {
    return this.typescript !== undefined || this.files.includes("tsconfig.json");
  }

  /** Whether it is the root of a workspace of npm, Yarn, Bun, or pnpm. */
  get isWorkspaceRoot(): boolean {
    return "workspaces" in this.manifest || this.files.includes("pnpm-workspace.yaml");
  }

  get isModule(): boolean {
    return this.manifest.type === "module";
  }

  /** Returns each tsconfig.json of the project that names files, followed by the ones that it extends. Settings in earlier ones win. */
  tsconfigs(...named: readonly string[]): ReturnType<typeof configFiles>[] {
    const paths = ["tsconfig.json", ...named]
      .map((name) => this.path(name))
      .filter((path) => existsSync(path));
    const all = new Set(paths.flatMap((path) => projectsInOrder(parser(), path)));
    return [...all].map((path) => configFiles(parser(), path));
  }

  /**
   * The tsconfig.json of the first files that are compiled. If the one here has no files, this is the first referenced project,
   * preferably not one with end-to-end tests.
   */
  get mainConfig(): string {
    const path = this.path("tsconfig.json");
    const all = existsSync(path) ? projectsInOrder(parser(), path) : [];
    if (all.length === 0 || all.includes(path)) return "tsconfig.json";
    return relative(
      this.dir,
      all.find((one) => !/-e2e[/\\]/.test(one.slice(this.dir.length))) ?? all[0] ?? path,
    );
  }

  /** Returns a setting of this tsconfig.json or of another one, including inherited settings. */
  setting(name: string, config = "tsconfig.json"): unknown {
    const path = this.path(config);
    const chain = existsSync(path) ? configFiles(parser(), path) : [];
    return chain.find(({ settings }) => name in settings)?.settings[name];
  }

  /** Whether Yarn Plug'n'Play resolves packages. It finds none in a `node_modules`. */
  get isPnp(): boolean {
    return "pnp" in process.versions;
  }

  get packageManager(): PackageManager {
    return packageManagerFor(this.dir);
  }

  /** Returns the command line that runs a program of an installed package. */
  running(...words: readonly string[]): string {
    return commandLine(this.dir, ...words);
  }

  #installed(name: string): string | undefined {
    if (this.isPnp) {
      const dir = packageByPnp(name, this.dir);
      return dir === undefined ? undefined : join(dir, "package.json");
    }
    for (const at of createRequire(this.path("package.json")).resolve.paths(name) ?? []) {
      const path = join(at, name, "package.json");
      if (existsSync(path)) return path;
    }
    return undefined;
  }
}

/** Returns the version range of an alias, which follows the last `@`, as in `npm:@typescript/typescript6@^6.0.2`. */
function versionIn(range: string): string {
  return range.startsWith("npm:") ? range.slice(range.lastIndexOf("@")) : range;
}
