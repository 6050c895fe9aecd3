import { systemClock } from "../../clock";
import { PartedKeysError, type Routes } from "./cluster/routes";
import { isDenied, isUnknownScript, translateError } from "./errors";
import type { Script } from "./scripts/script";

/** @param timeoutMs later than that nothing need be sent */
export type Send = (timeoutMs: number, command: string, ...args: (string | number)[]) => Promise<unknown>;

/** Has scripts carried out, also by servers that do not know them yet. */
export class ScriptRunner {
  readonly #send: Send;
  readonly #routes: Routes | undefined;

  /** @param routes those of a cluster */
  constructor(send: Send, routes: Routes | undefined) {
    this.#send = send;
    this.#routes = routes;
  }

  /**
   * A script for many keys, in which each has a reply of its own; `"each alone"` where one key keeps it from all.
   *
   * @param read the replies, from that of the script
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
   * EVALSHA, and EVAL once where the server does not know the script (after a restart or SCRIPT FLUSH).
   *
   * @param read what the reply means
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
        const known = await this.#taught(script, () => this.#send(leftMs(), "evalsha", sha1, ...rest));
        return read(known === UNKNOWN ? await this.command(leftMs(), "eval", source, ...rest) : known);
      },
    );
  }

  /** In a cluster all masters are taught a script at once; otherwise, and where that was in vain, it is sent as it is. */
  async #taught(script: Script, again: () => Promise<unknown>): Promise<unknown> {
    if (this.#routes === undefined) return UNKNOWN;
    await this.#routes.teach(script);
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

/** What is no reply. */
const UNKNOWN = Symbol("the script is not known");
