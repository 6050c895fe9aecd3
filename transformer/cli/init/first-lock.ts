import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { TryOut } from "./host";
import type { LockStore } from "./lock-store";
import type { Project } from "./project";

/** Returns the name and the text of the file with the first lock. */
export function firstLock(
  project: Project,
  isForNode: boolean,
  { argument }: LockStore,
): { readonly file: string; readonly text: string } {
  const configDir = dirname(project.mainConfig);
  const sources = existsSync(project.path(join(configDir, "src"))) ? join(configDir, "src") : configDir;
  const dir = sources === "." ? "" : `${sources.split(sep).join("/")}/`;
  const program = programFor(argument);
  if (!project.isTypeScript) return { file: `${dir}first-lock.mjs`, text: withoutTypes(program) };
  // Node treats a .ts file as CommonJS if package.json says so. A compiler that preserves imports does the same.
  const needsEnding = isForNode || project.setting("verbatimModuleSyntax", project.mainConfig) === true;
  const file = `${dir}first-lock.${needsEnding && !project.isModule ? "mts" : "ts"}`;
  return { file, text: knowsConsole(project) ? program : program.replace("\n\n", `\n\n${CONSOLE}\n\n`) };
}

/** @param argument the argument of `configure()` in an application */
const programFor = (
  argument: string,
): string => `import { configure, currentLock, memoryStore, shutdown } from "lockweave";

/** @redisLock businessFlag=firstLock keyName=orderNo */
async function pay(orderNo: string): Promise<string> {
  await Promise.resolve(); // Your work runs here, under the lock.
  return \`\${orderNo} is paid under \${currentLock().key}\`;
}

async function main(): Promise<void> {
  configure({ store: memoryStore() }); // An application: configure(${argument}).
  console.log(await pay("A1"));
  await shutdown();
}

void main();
`;

const CONSOLE = "declare const console: { log(text: string): void };";

function withoutTypes(program: string): string {
  return program.replaceAll(/: (?:string|Promise<\w+>)(?=[)\s])/g, "");
}

/** Whether the project's types declare `console`. */
function knowsConsole(project: Project): boolean {
  const [lib, types] = [
    project.setting("lib", project.mainConfig),
    project.setting("types", project.mainConfig),
  ];
  if (!Array.isArray(lib) || lib.some((name) => /^dom$/i.test(String(name)))) return true;
  if (Array.isArray(types)) return types.includes("node") || types.includes("*");
  return (project.typescript?.major ?? 6) < 6 && project.has("@types/node");
}

/**
 * Compiles and runs the first lock.
 *
 * @returns what it printed, or what went wrong
 */
export function tryFirstLock(
  project: Project,
  file: string,
  tryOut: TryOut,
): { isHeld: boolean; output: string } {
  const dir = mkdtempSync(project.path(join(dirname(project.mainConfig), ".lockweave-")));
  try {
    let output = "";
    for (const step of tryOut(project, file, dir)) {
      const args = typeof step === "function" ? step() : step;
      const { status, stdout, stderr, error } = spawnSync(process.execPath, args, {
        cwd: project.dir,
        encoding: "utf8",
      });
      if (error !== undefined) throw error;
      output = stdout + stderr;
      if (status !== 0) return { isHeld: false, output };
    }
    return { isHeld: output.includes("LOCK_firstLock_A1"), output };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
