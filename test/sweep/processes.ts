import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const SUPPORT = join(__dirname, "../support");

/** The result of a process or a command. */
export interface Finished {
  readonly code: number | null;
  readonly output: string;
}

export interface Start {
  readonly dir: string;
  readonly args: readonly string[];
  readonly node?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that hangs is killed after this time. */
const TIMEOUT_MS = 120_000;

/** Runs Node in a new process. */
export async function run({ dir, args, node = process.execPath, env = {} }: Start): Promise<Finished> {
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const child = spawn(node, args, {
    cwd: dir,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...inherited, ...env },
    timeout: TIMEOUT_MS,
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

/** Options for a Node process that runs a compiler once. They cache V8's code for TypeScript. */
export const COMPILER: readonly string[] = ["--no-opt", "--require", join(SUPPORT, "code-cache.cjs")];

type Command = "tspc" | "tsc" | "lockweave";

/** Compilers leak memory, so a process is replaced after this many commands. */
const MOST_COMMANDS = 100;

let server: ChildProcess | undefined;
let sent = 0;

/** Runs a command in a long-lived process that has the compilers loaded. One command at a time. */
export async function runCommand(command: Command, cwd: string, args: readonly string[]): Promise<Finished> {
  if (sent === MOST_COMMANDS) stopCommands();
  server ??= fork(join(SUPPORT, "command-server.cjs"), {
    execArgv: [
      "--require",
      join(SUPPORT, "code-cache.cjs"),
      "--require",
      join(SUPPORT, "ts-patch-cache.cjs"),
    ],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  sent += 1;
  const replied = once(server, "message");
  server.send({ id: sent, command, cwd, args });
  const [{ code, stdout, stderr }] = (await replied) as [
    { readonly code: number | null; readonly stdout: string; readonly stderr: string },
  ];
  return { code, output: stdout + stderr };
}

export function stopCommands(): void {
  server?.disconnect();
  server = undefined;
  sent = 0;
}
