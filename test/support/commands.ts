import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import test from "ava";

/** How a command ended. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the server of `command-server.cjs` runs. */
export type CommandName = "tspc" | "tsc" | "lockweave";

const SERVER = join(__dirname, "command-server.cjs");
const EXEC_ARGV = ["--max-semi-space-size=64", "--require", join(__dirname, "code-cache.cjs")];

let server: ChildProcess | undefined;
let sent = 0;
const waiting = new Map<number, (finished: Finished) => void>();

test.after.always("end the server of commands", () => {
  server?.kill();
});

/** Runs the command in the one process that this test file has for them. */
export function runCommand(command: CommandName, cwd: string, args: readonly string[]): Promise<Finished> {
  server ??= start();
  sent += 1;
  const id = sent;
  server.send({ id, command, cwd, args });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function start(): ChildProcess {
  const child = fork(SERVER, { execArgv: EXEC_ARGV, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  child.on("message", ({ id, ...finished }: Finished & { readonly id: number }) => {
    waiting.get(id)?.(finished);
    waiting.delete(id);
  });
  child.once("exit", (code, signal) => {
    if (server === child) server = undefined;
    for (const resolve of waiting.values()) {
      resolve({ code, stdout: "", stderr: `the server of commands ended with ${code ?? signal}` });
    }
    waiting.clear();
  });
  return child;
}
