import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Redis } from "ioredis";
import { until } from "./until";

/** The commands that a server runs from now on, including those inside scripts. */
export interface Monitor {
  /** Each command with its arguments. */
  readonly commands: readonly (readonly string[])[];
  /** Waits until `commands` contains all commands that ran before this call. */
  catchUp(): Promise<void>;
  stop(): void;
}

const ARGUMENT = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Watches the server of a connected client. It uses its own socket, because ioredis 6 throws if another command follows
 * the reply to MONITOR immediately.
 */
export async function startMonitor(client: Redis): Promise<Monitor> {
  const socket = connect(client.options.port ?? NaN, "127.0.0.1");
  const commands: string[][] = [];
  const lines = createInterface({ input: socket });
  lines.on("line", (line) => {
    if (line === "+OK") return;
    commands.push(Array.from(line.matchAll(ARGUMENT), ([, argument = ""]) => argument));
  });
  const ready = once(lines, "line");
  socket.write("MONITOR\r\n");
  await ready;
  return {
    commands,
    async catchUp() {
      const mark = randomUUID();
      await client.echo(mark);
      await until(() => commands.some(([, argument]) => argument === mark));
    },
    stop: () => socket.destroy(),
  };
}

/** Returns the commands that a server runs during `work`. */
export async function commandsDuring(
  client: Redis,
  work: () => Promise<unknown>,
): Promise<Monitor["commands"]> {
  const monitor = await startMonitor(client);
  await monitor.catchUp();
  const before = monitor.commands.length;
  await work();
  await monitor.catchUp();
  monitor.stop();
  return monitor.commands.slice(before, -1);
}
