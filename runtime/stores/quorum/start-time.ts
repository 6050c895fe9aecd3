import type { Clock } from "../../base/clock";
import { LockMisconfiguredError, errorMessage } from "../../base/errors";
import type { ClientPort } from "../redis/client-port";
import type { Command } from "../redis/command";
import { isDenied, isReply, translateError } from "../redis/errors";

/** Uptime comes in whole seconds, and both of its ends are rounded down. The true uptime may be this much shorter. */
const ROUNDED_MS = 1_000;
/** The server counts its uptime on its own clock, which may run fast. */
const DRIFT_RATIO = 0.01;

const INFO_SERVER: Command = { name: "info", keys: [], args: ["server"] };
/** An upper bound. The caller of `get()` has its own, shorter timeout. */
const INFO_TIMEOUT_MS = 5_000;

/** Errors of a server that cannot reply yet. */
const TEMPORARY = /^(?:LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/;

/** The servers behind the clients of one quorum, by the `run_id` of each Redis process. */
export class Servers {
  readonly #behind = new Map<StartTime, string>();

  /** @throws {LockMisconfiguredError} if another client has the same server, since one server has one vote */
  assertNew(id: string, client: StartTime): void {
    for (const [other, otherId] of this.#behind) {
      if (other === client || otherId !== id) continue;
      throw new LockMisconfiguredError("it is the same server as another master");
    }
    this.#behind.set(client, id);
  }
}

/** The start time of the server behind a client's connection. It is read once for each connection. */
export class StartTime {
  readonly #client: ClientPort;
  readonly #clock: Clock;
  readonly #servers: Servers;
  readonly #stopListening: () => void;
  #read: Promise<number> | undefined;

  constructor(client: ClientPort, clock: Clock, servers: Servers) {
    this.#client = client;
    this.#clock = clock;
    this.#servers = servers;
    this.#stopListening = client.onState({ down: this.#forget, up: this.#readAhead });
  }

  /**
   * Returns the latest time at which the server may have started, on our clock. A caller that checks a reply asks about the connection of
   * that reply. A newer connection is as good: its start time is the same or later.
   *
   * @throws {LockMisconfiguredError} if the server does not report it, or is the server of another client
   */
  get(): Promise<number> {
    return (this.#read ??= this.#ask());
  }

  close(): void {
    this.#stopListening();
  }

  readonly #forget = (): void => {
    this.#read = undefined;
  };

  readonly #readAhead = (): void => {
    this.#forget();
    this.get().catch(() => {});
  };

  #ask(): Promise<number> {
    const asked: Promise<number> = this.#client.send(INFO_SERVER, INFO_TIMEOUT_MS).then(
      (reply) => this.#startIn(String(reply)),
      (error: unknown) => {
        if (this.#read === asked) this.#read = undefined;
        throw whyUnknown(error);
      },
    );
    return asked;
  }

  #startIn(info: string): number {
    const now = this.#clock.now();
    const uptimeS = /^uptime_in_seconds:(\d+)/m.exec(info)?.[1];
    const id = /^run_id:(\w+)/m.exec(info)?.[1];
    if (uptimeS === undefined || id === undefined)
      throw unreadable("INFO has no uptime_in_seconds and run_id");
    this.#servers.assertNew(id, this);
    const atLeastMs = (Number(uptimeS) * 1_000 - ROUNDED_MS) * (1 - DRIFT_RATIO);
    return now - Math.max(atLeastMs, 0);
  }
}

function whyUnknown(error: unknown): Error {
  const translated = translateError(error);
  if (!isReply(error) || TEMPORARY.test(error.message)) return translated;
  // The messages of other permanent errors, such as a wrong password, already say what to do.
  const isOther = translated instanceof LockMisconfiguredError && !isDenied(error);
  return isOther ? translated : unreadable(errorMessage(translated), error);
}

function unreadable(reason: string, cause?: unknown): LockMisconfiguredError {
  return new LockMisconfiguredError(
    `its uptime cannot be read (${reason}), so Lockweave cannot tell whether this master lost its locks in a restart. Fix: allow INFO: ACL SETUSER <user> +info`,
    { cause },
  );
}
