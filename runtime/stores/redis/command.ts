import type { Script } from "./scripts/script";

export type Argument = string | number;

/**
 * A command for a Redis server. The client adds its key prefix to `keys`, and uses them to find the server. The name is in lower case, so
 * that ioredis need not convert it.
 */
export interface Command {
  readonly name: string;
  /** The script of `evalsha` or `eval`. */
  readonly script?: Script;
  readonly keys: readonly string[];
  /** The arguments after the keys. */
  readonly args: readonly Argument[];
}

/**
 * Sends a command.
 *
 * @param timeoutMs after this time, the command no longer needs to be sent
 */
export type Send = (command: Command, timeoutMs: number) => Promise<unknown>;

/** Returns the command as the words of the protocol. */
export function wordsOf({ name, script, keys, args }: Command): [name: string, ...Argument[]] {
  if (script === undefined) return [name, ...keys, ...args];
  return [name, name === "eval" ? script.source : script.sha1, keys.length, ...keys, ...args];
}

/** Returns the request IDs in one argument. */
export function idsOf(requests: readonly { readonly requestId: string }[]): string {
  return requests.map(({ requestId }) => requestId).join("");
}

/** Returns one argument if all lock times are equal, and otherwise one for each request. */
export function lockTimesOf(requests: readonly { readonly lockTimeMs: number }[]): number[] {
  const times = requests.map(({ lockTimeMs }) => lockTimeMs);
  return times.every((time) => time === times[0]) ? times.slice(0, 1) : times;
}
