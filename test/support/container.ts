import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Starts a process as process 1, as in a container. The process ends with this one. */
export const CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/** Returns the process that a {@link CONTAINER} runs as process 1, by its number outside. */
export function onlyChildOf(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8"));
}

/** The reason why this machine cannot create a container, if it cannot. */
export function reasonAgainstContainers(): string | undefined {
  const [command = "", ...args] = CONTAINER;
  const { status, error, stderr } = spawnSync(command, [...args, "true"], { encoding: "utf8" });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}
