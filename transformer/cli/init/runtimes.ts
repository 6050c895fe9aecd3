import { NOT_UNDERSTOOD, type Draft } from "./draft";
import type { Host, NextStep } from "./host";
import type { Project } from "./project";

// Runtimes other than Node that run TypeScript.

const WOVEN_AS_LOADED = "runs it with its locks, which are woven at load time; no file is written";

// ---- Bun ------------------------------------------------------------------------------------------------

const BUNFIG = `preload = ["lockweave/register"]

[test]
preload = ["lockweave/register"]
`;

/**
 * Returns the evidence that the project runs its sources with Bun.
 *
 * @param builder a script that builds the project. Bun runs it too, which is no evidence.
 */
export function runsInBun(project: Project, builder: string | undefined): string | undefined {
  const script = project.scripts.find((text) => {
    const [, file] =
      /(?<![\w./@:-])bun\s+(?:run\s+|--\S+\s+)*(test\b|[\w./-]+\.[cm]?[jt]sx?\b)/.exec(text) ?? [];
    return file !== undefined && file.replace(/^\.\//, "") !== builder;
  });
  if (script !== undefined) return `\`${script}\` in a script`;
  if (builder !== undefined) return undefined;
  if (project.files.includes("bunfig.toml")) return "bunfig.toml";
  return project.dependsOn("@types/bun") ? "`@types/bun` in package.json" : undefined;
}

/** Makes Bun load Lockweave's hook before the program and before the tests. */
export function preloadInBun(draft: Draft): void {
  const text = draft.text("bunfig.toml");
  if (text === undefined) draft.create("bunfig.toml", BUNFIG);
  else if (!text.includes("lockweave/register")) {
    draft.byHand.push({ file: "bunfig.toml", why: NOT_UNDERSTOOD, lines: BUNFIG.trimEnd().split("\n") });
  }
}

export function runningInBun(lock: string): NextStep {
  return { command: `bun ${lock}`, about: WOVEN_AS_LOADED, writesNothing: true };
}

// ---- Deno -----------------------------------------------------------------------------------------------

/** Deno preloads files but not packages, so this file imports the package. */
const PRELOADED = "lockweave-register.ts";

export const DENO: Host = {
  name: "Deno",
  evidence: denoConfig,
  setUp(draft, project) {
    const file = denoConfig(project) ?? "deno.json";
    if (draft.text(PRELOADED) === undefined) draft.create(PRELOADED, 'import "lockweave/register";\n');
    const isDone = draft.edit(file, (config) => {
      const root = config.root();
      const tasks = root && config.objectAt(root, "tasks");
      for (const property of tasks?.properties ?? []) {
        const name = property.name !== undefined && "text" in property.name ? property.name.text : "";
        const value = tasks && config.value(tasks, name);
        if (value === undefined || !("text" in value)) return false;
        const text = String(value.text);
        if (text.includes("--preload")) continue;
        const after = text.replaceAll(/\bdeno (?:run|test|serve)\b/g, `$& --preload ./${PRELOADED}`);
        if (after !== text) config.replace(value, JSON.stringify(after));
      }
      return root !== undefined;
    });
    if (isDone) return;
    draft.byHand.push({ file, why: NOT_UNDERSTOOD, lines: [`deno run --preload ./${PRELOADED} ...`] });
  },
  next: (_, __, lock) => ({
    command: `deno run --preload ./${PRELOADED} ${lock}`,
    about: WOVEN_AS_LOADED,
    writesNothing: true,
  }),
};

function denoConfig(project: Project): string | undefined {
  return ["deno.json", "deno.jsonc"].find((name) => project.files.includes(name));
}
