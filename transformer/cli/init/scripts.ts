import { projectPathsIn } from "../workspace/project-option";
import type { Draft } from "./draft";
import type { Project } from "./project";

/** One command of a script: the program, and its arguments. */
interface Command {
  readonly program: string;
  readonly rest: readonly string[];
}

/** Marks a command that must change, but that `init` cannot change by itself. */
export const BY_HAND = Symbol("by hand");

/** Returns the new command, or `undefined` to keep it. */
type Change = (command: Command) => string | typeof BY_HAND | undefined;

/**
 * Changes commands in the scripts of package.json.
 *
 * @returns the names of the scripts that a user must change by hand
 */
export function changeScripts(draft: Draft, project: Project, change: Change): string[] {
  const left: string[] = [];
  for (const name of Object.keys(project.manifest.scripts ?? {})) {
    const isDone = draft.edit("package.json", (config) => {
      const root = config.root();
      const scripts = root && config.objectAt(root, "scripts");
      const value = scripts && config.value(scripts, name);
      if (value === undefined || !("text" in value)) return false;
      const before = String(value.text);
      let isUnderstood = true;
      const after = before
        .split(SEPARATORS)
        .map((part) => {
          const [, start = "", program = "", rest = "", end = ""] = COMMAND.exec(part) ?? [];
          const changed = change({ program, rest: rest.split(/\s+/).filter((word) => word !== "") });
          if (changed === BY_HAND) isUnderstood = false;
          return typeof changed === "string" ? `${start}${changed}${end}` : part;
        })
        .join("");
      if (after !== before) config.replace(value, JSON.stringify(after));
      return isUnderstood;
    });
    if (!isDone) left.push(name);
  }
  return left;
}

/**
 * Returns why a user must change scripts by hand.
 *
 * @param left the names of the scripts
 * @param fix what to do in them, as in "run". The lines to write follow it
 */
export function notUnderstood(left: readonly string[], fix: string): string {
  const names = left.map((name) => `\`${name}\``).join(", ");
  const isOne = left.length === 1;
  return `Lockweave does not understand the ${isOne ? "script" : "scripts"} ${names}. In ${isOne ? "it" : "them"}, ${fix}`;
}

const SEPARATORS = /(\s*(?:&&|\|\||;|\||(?<!\d>)&)\s*)/;
const COMMAND = /^(\s*(?:(?:cross-env|npx|\w+=\S*)\s+)*)(\S+)(.*?)(\s*)$/s;

/** Detects a tool behind another program, such as `concurrently "tsc -w"` or `nodemon --exec tsx`. */
export function hides(tool: string, program: string, rest: readonly string[]): typeof BY_HAND | undefined {
  const quoted = new RegExp(`^["']+${tool}["']*$`);
  const isThere =
    quoted.test(program) ||
    rest.some((word, at) => quoted.test(word) || (word === tool && RUNS_THE_NEXT.has(rest[at - 1] ?? "")));
  return isThere ? BY_HAND : undefined;
}

const RUNS_THE_NEXT: ReadonlySet<string> = new Set(["--", "--exec", "-x", "exec"]);

/** Returns the command that runs the program: a script of the changed package.json, or the program itself. */
export function commandFor(
  project: Project,
  draft: Draft,
  program: string,
  ...rest: readonly string[]
): string {
  const starting = (words: readonly string[]): RegExp =>
    new RegExp(`(?<![\\w./@:-])${words.join("\\s+")}(?![\\w./:-])`);
  const whole = [program, ...rest];
  // `vite` alone starts a development server, so `build` is required. `vitest` alone runs the tests, as `vitest run` does.
  const script =
    scriptThat(project, draft, starting(whole)) ??
    (rest[0] === "build" ? undefined : scriptThat(project, draft, starting([program])));
  return script ?? project.running(...whole);
}

/** Returns the command that runs a file with a program, in the same way. */
export function commandOfFile(project: Project, draft: Draft, program: string, file: string): string {
  const starts = new RegExp(
    `(?<![\\w./@:-])${program}\\s[^&|;]*?(?<=\\s)(?:\\./)?${file.replaceAll(".", "\\.")}(?![\\w./-])`,
  );
  return scriptThat(project, draft, starts) ?? `${program} ${file}`;
}

function scriptThat({ packageManager }: Project, draft: Draft, starts: RegExp): string | undefined {
  const { scripts = {} } = JSON.parse(draft.text("package.json") ?? "{}") as {
    scripts?: Readonly<Record<string, string>>;
  };
  const names = Object.entries(scripts)
    .filter(([, text]) => starts.test(text) && !/\s(?:-w|--watch|watch|--noEmit)(?=\s|$)/.test(text))
    .map(([name]) => name);
  // Prefers a build script, because a script such as `test` may build first.
  const script = names.find((name) => /^build(?:\W|$)/.test(name)) ?? names[0];
  return script === undefined ? undefined : `${packageManager.name} run ${script}`;
}

/** Returns the paths that scripts pass to `tsc -p` or `tsc -b`. */
export function projectsOf(project: Project): string[] {
  const commands = project.scripts.flatMap((script) => script.replaceAll('"', "'").split(/[&|;]/));
  return commands
    .filter((command) => /\btsc6?\b/.test(command))
    .flatMap((command) => projectPathsIn(command))
    .map((path) => (path.endsWith(".json") ? path : `${path}/tsconfig.json`));
}
