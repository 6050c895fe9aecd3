import { systemClock } from "../../base/clock";
import type { Command } from "./command";
import { isUnknownScript, translateError } from "./errors";
import type { Server } from "./server";

/** Sends a command, even if the server does not have its script. */
export async function sendScript(server: Server, command: Command, timeoutMs: number): Promise<unknown> {
  const dueAt = systemClock.now() + timeoutMs;
  try {
    return await server.transport.send(command, timeoutMs);
  } catch (error) {
    if (isUnknownScript(error)) return await sendWithSource(server, command, dueAt);
    throw error;
  }
}

/**
 * Repeats a command whose script the server does not have, such as after a restart or SCRIPT FLUSH. In a cluster, first loads the script on
 * the master of its key. If that does not help, or without a cluster, sends the source of the script.
 *
 * @param dueAt the deadline for the reply, on the monotonic clock
 */
export async function sendWithSource(server: Server, command: Command, dueAt: number): Promise<unknown> {
  const { cluster } = server;
  const [key] = command.keys;
  if (cluster !== undefined && command.script !== undefined && key !== undefined) {
    await cluster.routes.load(command.script, key);
    try {
      return await server.transport.send(command, leftUntil(dueAt));
    } catch (error) {
      if (!isUnknownScript(error)) throw translateError(error);
    }
  }
  return await server.ask({ ...command, name: "eval" }, leftUntil(dueAt));
}

function leftUntil(dueAt: number): number {
  const leftMs = dueAt - systemClock.now();
  if (leftMs > 0) return leftMs;
  throw new Error("Redis does not have the script in its cache, and there is no time left to send it");
}
