import { systemClock } from "../../base/clock";
import { PartedKeysError, type Routes } from "./cluster/routes";
import { isDenied, isUnknownScript, translateError } from "./errors";
import type { Script } from "./scripts/script";

/** @param timeoutMs after this time, the command no longer needs to be sent */
export type Send = (timeoutMs: number, command: string, ...args: (string | number)[]) => Promise<unknown>;

/** Runs scripts, also on servers that do not have them in their cache. */
export class ScriptRunner {
  readonly #send: Send;
  readonly #routes: Routes | undefined;

  /** @param routes the routes of a cluster, if there is one */
  constructor(send: Send, routes: Routes | undefined) {
    this.#send = send;
    this.#routes = routes;
  }

  /**
   * Runs a script for many keys, with a reply for each. Returns `"each alone"` if the script failed for all keys because of one of them.
   *
   * @param read returns the replies from the reply of the script
   */
  async runMany(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
    read: (reply: unknown) => readonly unknown[],
  ): Promise<readonly unknown[] | "each alone"> {
    try {
      return await this.run(script, keys, args, timeoutMs, read);
    } catch (error) {
      const isOfOneKey =
        error instanceof PartedKeysError || (error instanceof Error && isDenied(error.cause));
      if (keys.length > 1 && isOfOneKey) return "each alone";
      throw error;
    }
  }

  /**
   * Sends EVALSHA. If the server does not have the script (after a restart or SCRIPT FLUSH), sends EVAL once. In a cluster, it first loads
   * the script on all masters and tries EVALSHA again.
   *
   * @param read converts the reply
   */
  run<Meaning>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    timeoutMs: number,
    read: (reply: unknown) => Meaning,
  ): Promise<Meaning> {
    const { source, sha1 } = script;
    const startedAt = systemClock.now();
    return this.#send(timeoutMs, "evalsha", sha1, keys.length, ...keys, ...args).then(
      read,
      async (error: unknown) => {
        if (!isUnknownScript(error)) throw translateError(error);
        const rest = [keys.length, ...keys, ...args];
        const leftMs = (): number => {
          const left = timeoutMs - (systemClock.now() - startedAt);
          if (left > 0) return left;
          throw new Error(
            "Redis does not have the script in its cache, and there is no time left to send it",
          );
        };
        const reply = await this.#runAfterLoading(script, () =>
          this.#send(leftMs(), "evalsha", sha1, ...rest),
        );
        return read(reply === UNKNOWN ? await this.command(leftMs(), "eval", source, ...rest) : reply);
      },
    );
  }

  /**
   * Loads the script on all masters of a cluster, and sends the command again. Returns `UNKNOWN` without a cluster, or if that did not
   * help.
   */
  async #runAfterLoading(script: Script, again: () => Promise<unknown>): Promise<unknown> {
    if (this.#routes === undefined) return UNKNOWN;
    await this.#routes.load(script);
    try {
      return await again();
    } catch (error) {
      if (isUnknownScript(error)) return UNKNOWN;
      throw translateError(error);
    }
  }

  command(timeoutMs: number, ...command: [string, ...(string | number)[]]): Promise<unknown> {
    return this.#send(timeoutMs, ...command).catch((error: unknown) => {
      throw translateError(error);
    });
  }
}

/** Stands for a missing reply: the server does not have the script. */
const UNKNOWN = Symbol("the script is not known");
