import { spawnSync } from "node:child_process";
import {
  confirms,
  block,
  bold,
  cyan,
  NOT_AGREED,
  padded,
  print,
  red,
  safe,
  type SafeText,
} from "../../terminal/printer";
import { BUNDLERS } from "./bundlers";
import { lockStoreOf } from "./choose-store";
import { COMPILERS, usualCompiler } from "./compilers";
import { Draft } from "./draft";
import { setUpESLint } from "./eslint";
import { firstLock, tryFirstLock } from "./first-lock";
import type { Host, NextStep } from "./host";
import { JEST } from "./jest";
import type { StoreName } from "./lock-store";
import { notesOnTools } from "./other-tools";
import { Project, TYPESCRIPT } from "./project";
import { PLAIN_NODE, RUNNERS } from "./runners";
import {
  configuringFile,
  createdStartup,
  howItConfigures,
  placeOf,
  placeOfImport,
  type Startup,
} from "./startup";
import { parser } from "../../parser/parser";
import { tagsOfSource } from "../../read/declared-tags";
import { UsageError } from "../../terminal/usage-error";
import { writeFiles } from "../workspace/write-files";

/** All hosts in order of priority. The first detected host that can try out a lock shows the first lock. */
export const HOSTS: readonly Host[] = [...BUNDLERS, ...COMPILERS, ...RUNNERS, JEST];

/**
 * Sets up the project for its compiler after the user confirms, and shows a first lock.
 *
 * @param store the store that the user asks for
 * @returns the exit code
 * @throws {UsageError} if there is no project, or if this is the root of a workspace without anything to set up
 */
export async function init(dir: string, isAgreed: boolean, store?: StoreName): Promise<number> {
  const project = new Project(dir);
  const plan = planFor(project, store);
  print(...report(project, plan));
  if (hasChanges(plan)) {
    if (!isAgreed && !(await confirms(safe`Change it?`))) {
      print(
        safe`Nothing was changed. To apply the changes without confirmation, run \`${initCommand(project, plan, "--yes")}\`.`,
      );
      return NOT_AGREED;
    }
    if (!apply(project, plan)) return 1;
  }
  const isShown = showFirstLock(project, plan);
  print(...nextSteps(project, plan));
  return isShown && plan.draft.byHand.length === 0 ? 0 : 1;
}

// ---- the plan -------------------------------------------------------------------------------------------

interface Plan {
  /** The store that the user asks for. */
  readonly chosen: StoreName | undefined;
  readonly draft: Draft;
  readonly found: readonly (readonly [host: Host, evidence: string])[];
  readonly lock: { readonly file: string; readonly text: string };
  /** A file of the project with tags. Then the project gets no first lock. */
  readonly tagged: string | undefined;
  /** The host that shows the first lock, if its configuration is complete. */
  readonly host: Host | undefined;
  readonly isComplete: boolean;
}

export function planFor(project: Project, chosen?: StoreName): Plan {
  const store = lockStoreOf(project, chosen);
  const draft = new Draft(project, store);
  const found = hostsOf(project);
  draft.install("lockweave");
  draft.install(...store.packages);
  draft.byHand.push(...store.byHand);
  if (project.typescript?.isTooOld === true) {
    draft.byHand.push({
      file: "package.json",
      why: `Lockweave needs TypeScript 5.9 or later, but this project has ${project.typescript.version}:`,
      lines: [[...project.packageManager.installDev, "typescript@6"].join(" ")],
    });
  }
  const incomplete = new Set<Host>();
  for (const [host] of found) {
    const before = draft.byHand.length;
    host.setUp(draft, project);
    if (draft.byHand.length > before) incomplete.add(host);
  }
  setUpESLint(draft, project);
  const host = found.map(([one]) => one).find(({ tryOut }) => tryOut !== undefined);
  const lock = firstLock(project, host === PLAIN_NODE, store);
  const isOnlyFramework = host === undefined && mainHost(found)?.isFramework === true;
  const hasFirstLock = draft.text(lock.file) !== undefined;
  const tagged = hasFirstLock ? undefined : fileWithTags(project);
  if (!isOnlyFramework && !hasFirstLock && tagged === undefined) draft.create(lock.file, lock.text);
  return {
    chosen,
    draft,
    found,
    lock,
    tagged,
    host,
    isComplete: host !== undefined && !incomplete.has(host),
  };
}

/** Returns the first source file with a tag, except for tests and the first lock. */
function fileWithTags(project: Project): string | undefined {
  return project
    .codeFiles()
    .find((file) => tagsOfSource(parser(), file, project.read(file) ?? "").length > 0);
}

/** Returns the command line of this command, with the store that the user asks for. */
function initCommand(project: Project, { chosen }: Plan, ...words: readonly string[]): string {
  return project.running("lockweave init", ...(chosen === undefined ? [] : [`--store ${chosen}`]), ...words);
}

/** Returns the first host that does not only run tests. */
function mainHost(found: Plan["found"]): Host | undefined {
  return found.map(([host]) => host).find(({ isForTests }) => isForTests !== true);
}

function hostsOf(project: Project): Plan["found"] {
  const found = HOSTS.flatMap((host): Plan["found"][number][] => {
    const evidence = host.evidence(project);
    return evidence === undefined ? [] : [[host, evidence]];
  });
  if (found.some(([host]) => host.isForTests !== true)) return found;
  if (project.isWorkspaceRoot && found.length === 0 && !project.files.includes("tsconfig.json")) {
    throw new UsageError(
      `This is the root of a workspace, and no compiler was found here. Fix: run \`${project.running("lockweave init")}\` in each package that has tags or calls \`configure()\`.`,
    );
  }
  const runsAsIs = stripsTypes() && !project.files.includes("tsconfig.json") && project.hasOnly(/\.mts$/);
  const usual = runsAsIs ? undefined : usualCompiler(project);
  if (usual === undefined && found.length === 0) assertNodeRuns(project);
  return [[usual ?? PLAIN_NODE, "no other compiler was found"], ...found];
}

/** Whether this Node runs TypeScript. */
function stripsTypes(): boolean {
  return Boolean((process.features as { readonly typescript?: unknown }).typescript);
}

/** @throws {UsageError} if this Node does not run the sources */
function assertNodeRuns(project: Project): void {
  if (stripsTypes() || !project.hasOnly(TYPESCRIPT)) return;
  const install = [...project.packageManager.installDev, "typescript@6"].join(" ");
  throw new UsageError(
    `The sources are TypeScript, which this Node (${process.versions.node}) does not run, and no compiler was found. Fix: run \`${install}\`, or use Node 22.18 or later.`,
  );
}

function hasChanges({ draft }: Plan): boolean {
  return draft.changes.size + draft.dependencies.size + draft.devDependencies.size > 0;
}

// ---- the report -----------------------------------------------------------------------------------------

function report(project: Project, { draft, found }: Plan): SafeText[] {
  const { packageManager, isModule } = project;
  const commands = commandsOf(project, draft).map((command) => safe`  ${command.join(" ")}`);
  const changes = [...draft.changes].flatMap(([file, text]) => {
    const before = project.read(file);
    const { removed, added } = changedLines(before ?? "", text);
    return [safe`  ${file}${before === undefined ? " (new)" : ""}`].concat(
      removed.map((line) => red(safe`  - ${block(line)}`)),
      added.map((line) => cyan(safe`  + ${block(line)}`)),
    );
  });
  const byHand = draft.byHand.flatMap(({ file, why, lines }) => [
    safe`  ${file}: ${why}`,
    ...lines.map((line) => cyan(safe`    ${block(line)}`)),
  ]);
  const notes = notesOnTools(project, draft).map((note) => safe`  ${note}`);
  return [
    bold("Found"),
    safe`  ${typeScriptsOf(project)}, ${isModule ? "ES modules" : "CommonJS"}, ${packageManager.name}`,
    ...found.map(([host, evidence]) => safe`  ${host.name}: ${evidence}`),
    ...draft.store.found.map((line) => safe`  ${line}`),
    safe``,
    bold("To change"),
    ...(changes.length + commands.length === 0 ? [safe`  nothing`] : changes),
    ...commands,
    ...(byHand.length === 0 ? [] : [safe``, bold("Left to you"), ...byHand]),
    ...(notes.length === 0 ? [] : [safe``, bold("Other tools"), ...notes]),
    safe``,
  ];
}

function typeScriptsOf({ typescript, typescripts }: Project): string {
  const aliases = typescripts.filter(({ name }) => name !== "typescript");
  const versions = [
    ...(typescript === undefined ? [] : [typescript.version]),
    ...aliases.map(({ name, version }) => `${version} (\`${name}\`)`),
  ];
  return versions.length === 0 ? "no TypeScript" : `TypeScript ${versions.join(" and ")}`;
}

/** Returns the lines that only one of the two texts contains. */
function changedLines(
  before: string,
  after: string,
): { readonly removed: string[]; readonly added: string[] } {
  const only = (these: string, those: string): string[] => {
    const others = those.split("\n");
    return these.split("\n").filter((line) => {
      const at = others.indexOf(line);
      if (at !== -1) others.splice(at, 1);
      return at === -1 && line !== "";
    });
  };
  return { removed: only(before, after), added: only(after, before) };
}

// ---- applying the plan ----------------------------------------------------------------------------------

type Command = readonly [program: string, ...args: string[]];

function commandsOf(project: Project, draft: Draft): Command[] {
  return [...installations(project, draft), ...draft.commands];
}

function installations({ packageManager }: Project, { dependencies, devDependencies }: Draft): Command[] {
  const [program = "npm", ...args] = packageManager.install;
  const [devProgram = "npm", ...devArgs] = packageManager.installDev;
  const commands: Command[] = [];
  if (dependencies.size > 0) commands.push([program, ...args, ...dependencies]);
  if (devDependencies.size > 0) commands.push([devProgram, ...devArgs, ...devDependencies]);
  return commands;
}

/**
 * Installs packages before it changes a file. A configuration that names a missing package would break the next build.
 *
 * @returns whether all steps succeeded
 */
function apply(project: Project, plan: Plan): boolean {
  const missing = installations(project, plan.draft);
  const failed = missing.find((command) => !run(project, command));
  if (failed !== undefined) {
    print(
      safe`\`${failed.join(" ")}\` failed, so no file was changed. Fix what it reported, and run \`${initCommand(project, plan)}\` again.`,
    );
    return false;
  }
  // The package manager changed package.json, so the plan is made again from its current text.
  const now = missing.length === 0 ? plan : planFor(new Project(project.dir), plan.chosen);
  if (hostNames(now) !== hostNames(plan)) {
    print(
      safe`The packages are installed. Now \`init\` finds ${hostNames(now)} instead of ${hostNames(plan)}, so it changed no file. Run \`${initCommand(project, plan)}\` again.`,
    );
    return false;
  }
  writeFiles(project.dir, now.draft.fileChanges);
  const failedLater = plan.draft.commands.find((command) => !run(project, command));
  if (failedLater === undefined) return true;
  print(
    safe`\`${failedLater.join(" ")}\` failed. Fix what it reported, and run \`${initCommand(project, plan)}\` again.`,
  );
  return false;
}

function hostNames({ found }: Plan): string {
  return found.map(([host]) => host.name).join(", ");
}

function run({ dir }: Project, [program, ...args]: Command): boolean {
  const settings = { cwd: dir, stdio: "inherit", shell: process.platform === "win32" } as const;
  return spawnSync(program, args, settings).status === 0;
}

/**
 * Compiles and runs the first lock, and prints the result.
 *
 * @returns whether it ran under its lock, or only the whole application can show it
 */
function showFirstLock(project: Project, plan: Plan): boolean {
  const { draft, found, lock, tagged, host, isComplete } = plan;
  if (tagged !== undefined) {
    print(safe`${tagged} has tags already, so \`init\` created no first lock.`);
    return true;
  }
  if (draft.text(lock.file) === undefined) return true;
  if (host?.tryOut === undefined) {
    const command = found
      .map(([one]) => one.next(project, draft, lock.file).command)
      .find((one) => one.includes(lock.file));
    if (command !== undefined) {
      print(
        safe`Your first lock is in ${lock.file}. To run it, use \`${command}\`. It prints \`A1 is paid under LOCK_firstLock_A1\`.`,
      );
      return true;
    }
    const name = found[0]?.[0].name ?? "your compiler";
    print(
      safe`Your first lock is in ${lock.file}. It calls \`configure()\` and \`shutdown()\` itself, so do not import it in your application. Build it with ${name} as a separate entry. When you run the output, it prints \`A1 is paid under LOCK_firstLock_A1\`.`,
    );
    return true;
  }
  if (!isComplete || project.typescript?.isTooOld === true) {
    print(
      safe`After you have made the changes above, run \`${initCommand(project, plan)}\` again. It then shows your first lock.`,
    );
    return false;
  }
  const { isHeld, output } = tryFirstLock(project, lock.file, host.tryOut);
  print(
    isHeld
      ? safe`Your first lock, woven by ${host.name}, is ${lock.file}:`
      : safe`${lock.file} does not run under its lock with ${host.name}:`,
    block(output.trimEnd()),
  );
  if (isHeld && draft.byHand.length > 0) print(safe`The other changes above are left to you.`);
  return isHeld;
}

/** Lists the commands that compile or run the project, and what to do next. */
function nextSteps(project: Project, { draft, found, lock, tagged }: Plan): SafeText[] {
  const steps = found.map(([host]) => host.next(project, draft, tagged ?? lock.file));
  // Mocha and ts-node may name the same script. The test runner comes later, and describes the script better.
  const commands = [...new Map(steps.map((step) => [step.command, step])).values()];
  return [
    safe``,
    bold("Next"),
    ...inColumns(draft.store.steps),
    ...inColumns(commands),
    safe``,
    ...whatToWrite(project, draft, mainHost(found)?.startup, lock.file),
    safe`\`${project.running("lockweave list")}\` shows every lock; ${proofOf(project, found, steps)}`,
    ...(project.typescripts.length > 0
      ? []
      : [
          safe`Both need TypeScript: \`${[...project.packageManager.installDev, "typescript@6"].join(" ")}\`.`,
        ]),
  ];
}

function inColumns(steps: readonly Pick<NextStep, "command" | "about">[]): SafeText[] {
  const width = Math.max(...steps.map(({ command }) => command.length));
  return steps.map(({ command, about }) => safe`  ${cyan(padded(command, width))}  ${about}`);
}

/** Describes how to write a lock. `configure()` may be in a file that `init` created. */
function whatToWrite(
  project: Project,
  draft: Draft,
  startup: Startup | undefined,
  lock: string,
): readonly SafeText[] {
  const tag = safe`Write \`/** @redisLock businessFlag=payOrder keyName=orderNo */\` above one of your async methods`;
  const ending = draft.text(lock) === undefined ? safe`.` : safe`, and delete ${lock}.`;
  const created = startup && createdStartup(draft, startup);
  if (created !== undefined) return [safe`${tag}${ending}`, safe`${created} calls \`configure()\`.`];
  const configuring = configuringFile(project);
  if (configuring !== undefined) {
    const first = startup && placeOfImport(project, startup, configuring);
    const where =
      first === undefined ? "" : ` Import it in ${first}, so that it runs when the server starts.`;
    return [safe`${tag}${ending}`, safe`${configuring} ${howItConfigures(project, configuring)}.${where}`];
  }
  const { argument, about } = draft.store.proposed;
  if (startup?.hasModules === true) {
    const module = safe`\`LockModule.forRoot(${argument})\` of \`lockweave/nest\``;
    const root = safe`the root module that ${placeOf(project, startup)} starts`;
    const and = draft.text(lock) === undefined ? "and import" : "import";
    return [safe`${tag}, ${and}`, safe`${module} in ${root}${ending}${about}`];
  }
  const place = startup === undefined ? "" : `, in ${placeOf(project, startup)}`;
  const and = draft.text(lock) === undefined ? "and call" : "call";
  return [safe`${tag}, ${and}`, safe`\`configure(${argument})\` once at startup${place}${ending}${about}`];
}

/** Returns how to check the locks. That depends on the tool that writes the output. */
function proofOf(project: Project, found: Plan["found"], steps: readonly NextStep[]): string {
  const check = project.running("lockweave check");
  const isThere = (hosts: readonly Host[]): boolean =>
    found.some(([host]) => hosts.includes(host) && host.isForTests !== true);
  const output = steps.find((step) => step.output !== undefined)?.output;
  if (output !== undefined) return `\`${check} --output "${output}"\` verifies them after a build.`;
  const isOnlyLoaded = found.every(
    ([host], at) => host.isForTests === true || steps[at]?.writesNothing === true,
  );
  if (isOnlyLoaded) return `\`${check}${project.isCompiled ? " --watch" : ""}\` reports wrong tags.`;
  if (isThere(BUNDLERS)) return `\`${check} --output\` with the build's output verifies them.`;
  const isEmitted = isThere(COMPILERS) && project.setting("noEmit", project.mainConfig) !== true;
  return isEmitted || !project.isCompiled
    ? `\`${check}\` verifies them after a build.`
    : `\`${check} --watch\` reports wrong tags.`;
}
