import { join } from "node:path";
import { registerSharedWorker } from "ava/plugin";

/** The result of a command. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The commands that `command-server.cjs` runs. */
export type CommandName = "tspc" | "tsc" | "lockweave";

const pool = registerSharedWorker({
  filename: join(__dirname, "command-pool.mjs"),
  supportedProtocols: ["ava-4"],
});

/** Runs the command in one of the processes that all test files share. */
export async function runCommand(
  command: CommandName,
  cwd: string,
  args: readonly string[],
): Promise<Finished> {
  await pool.available;
  const tsPatchCache = process.env["TSP_CACHE_DIR"];
  for await (const { data } of pool.publish({ command, cwd, args, tsPatchCache }).replies()) {
    return data as Finished;
  }
  throw new Error(`no reply to ${command} ${args.join(" ")}`);
}
