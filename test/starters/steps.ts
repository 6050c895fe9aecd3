import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { RedisServer } from "../support/redis-server";
import { SERVICE, withWrongTag } from "./service";
import { run, type Output, type Shell } from "./shell";
import type { Files, Starter } from "./starters";
import { assertOneWaits } from "./two-processes";

/** The package, the programs, and the Redis server that all trials share. */
export interface Supplies {
  /** The packed package. */
  readonly lockweave: string;
  /** Directories of programs, such as Node. */
  readonly path: readonly string[];
  readonly redis: RedisServer;
}

/** A project that is being tried. */
interface Trial extends Supplies {
  readonly starter: Starter;
  /** The directory in which the starter creates `app`. */
  readonly parent: Shell;
  readonly project: Shell;
  /** The directory of the application in the project. */
  readonly home: Shell;
}

export interface Step {
  readonly name: string;
  /** Set if no later step can run without this one. */
  readonly isNeeded?: true;
  /** `undefined` if the starter has no such step. Throws an error if the step fails. */
  readonly run: (trial: Trial) => Promise<void> | undefined;
}

export const STEPS: readonly Step[] = [
  { name: "create", isNeeded: true, run: create },
  { name: "install", isNeeded: true, run: install },
  {
    name: "init",
    isNeeded: true,
    run: async ({ home, starter }) =>
      expectCode(
        await run(home, `${starter.runner ?? "npx"} lockweave init --yes`),
        starter.byUser === undefined ? 0 : 1, // It exits with 1 if it leaves something to the user.
      ),
  },
  {
    name: "what init asks for",
    isNeeded: true,
    run: ({ project, starter }) => (starter.byUser === undefined ? undefined : edit(project, starter.byUser)),
  },
  { name: "init again changes nothing", run: initAgain },
  {
    name: "build",
    run: ({ starter, project }) =>
      starter.build === undefined ? undefined : succeeds(project, starter.build),
  },
  {
    name: "its own tests",
    run: ({ starter, project }) => (starter.test === undefined ? undefined : succeeds(project, starter.test)),
  },
  {
    name: "its own lint",
    run: ({ starter, project }) => (starter.lint === undefined ? undefined : succeeds(project, starter.lint)),
  },
  { name: "two processes", run: ({ starter, home, redis }) => assertOneWaits(home, starter, redis) },
  { name: "check", run: check },
  { name: "wrong tag", run: wrongTag },
];

/** Runs `body` with a project in a directory that is removed afterwards. */
export async function inTrial(
  starter: Starter,
  supplies: Supplies,
  body: (trial: Trial) => Promise<void>,
): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), `starter-${starter.name}-`));
  const shell = (of: string): Shell => ({ dir: of, path: supplies.path });
  const project = join(dir, "app");
  try {
    await body({
      ...supplies,
      starter,
      parent: shell(dir),
      project: shell(project),
      home: shell(join(project, starter.home ?? "")),
    });
  } finally {
    if (process.env["KEEP"] === undefined) await rm(dir, { recursive: true, force: true });
    else console.log(`  kept in ${project}`);
  }
}

async function create({ starter, parent, project }: Trial): Promise<void> {
  await (starter.create === undefined ? mkdir(project.dir) : succeeds(parent, starter.create));
  await edit(project, starter.edit);
  await write(project, starter.files);
}

async function edit(shell: Shell, edits: Starter["edit"] = {}): Promise<void> {
  for (const [file, change] of Object.entries(edits)) {
    const before = await readFile(join(shell.dir, file), "utf8");
    const after = change(before);
    if (after === before) throw new Error(`The edit of ${file} changes nothing:\n${before}`);
    await write(shell, { [file]: after });
  }
}

async function install({ starter, project, lockweave }: Trial): Promise<void> {
  const command = starter.install ?? "npm install {lockweave} ioredis@6.0.0";
  await succeeds(project, command.replaceAll("{lockweave}", lockweave));
}

async function initAgain({ home, starter }: Trial): Promise<void> {
  const again = await run(home, `${starter.runner ?? "npx"} lockweave init`);
  expectCode(again, 0);
  if (!/To change\n +nothing\n/.test(again.text)) fail(again, "It changes files.");
}

function check({ starter, home }: Trial): Promise<void> | undefined {
  if (starter.check === undefined) return undefined;
  return checkWithoutFirstLock(home, `${starter.runner ?? "npx"} lockweave check ${starter.check}`);
}

/** The first lock is not part of the application, and `init` says to delete it. */
async function checkWithoutFirstLock(home: Shell, command: string): Promise<void> {
  await succeeds(home, "find . -name 'first-lock.*' -not -path '*/node_modules/*' -delete");
  await succeeds(home, command);
}

/** The build must fail with an error at the position of the wrong name. */
async function wrongTag({ starter, project }: Trial): Promise<void> {
  const { tagged } = starter;
  const text = starter.files[tagged] ?? SERVICE;
  await write(project, { [tagged]: withWrongTag(text) });
  const lines = withWrongTag(text).split("\n");
  const line = lines.findIndex((one) => one.includes("keyName=nobody")) + 1;
  const output = await run(project, starter.reports ?? starter.build ?? starter.start.command);
  if (output.code === 0) fail(output, "It succeeds.");
  const place = new RegExp(`${tagged.split("/").at(-1)}[:(]${line}[:,]\\d+`);
  if (!place.test(output.text)) fail(output, `It does not name ${place}.`);
  if (!output.text.includes("1202")) fail(output, "It does not print LW1202.");
}

async function write({ dir }: Shell, files: Files): Promise<void> {
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), text);
  }
}

async function succeeds(shell: Shell, command: string): Promise<void> {
  expectCode(await run(shell, command), 0);
}

function expectCode(output: Output, code: number): void {
  if (output.code !== code) fail(output, `It exits with ${output.code}.`);
}

function fail({ command, text }: Output, why: string): never {
  throw new Error(`$ ${command}\n${text.trimEnd()}\n${why}`);
}
