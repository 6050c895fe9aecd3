import type { Clock } from "../../clock";
import { LockMisconfiguredError, errorMessage } from "../../errors";
import { listenInRoot } from "../../root-context";
import type { RedisClient } from "../redis/client";
import { translateError } from "../redis/errors";

/** Uptime comes in whole seconds, each end of it rounded down: it may be so much less in truth. */
const ROUNDED_MS = 1_000;
/** And it is counted on the server's clock. */
const DRIFT_RATIO = 0.01;

/** What a server says when it cannot answer yet. */
const FOR_NOW = /^(?:LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/;

/** The servers behind the clients of one quorum, by the id that each process of Redis gives itself. */
export class Servers {
  readonly #behind = new Map<StartTime, string>();

  /** @throws {LockMisconfiguredError} where another client has the same server: one server has one vote */
  assertNew(id: string, asker: StartTime): void {
    for (const [other, otherId] of this.#behind) {
      if (other === asker || otherId !== id) continue;
      throw new LockMisconfiguredError("it is the same server as another of the masters");
    }
    this.#behind.set(asker, id);
  }
}

/** When the server behind a client's connection was started. It is read once for each connection. */
export class StartTime {
  readonly #client: RedisClient;
  readonly #clock: Clock;
  readonly #servers: Servers;
  readonly #stopListening: () => void;
  #read: Promise<number> | undefined;

  constructor(client: RedisClient, clock: Clock, servers: Servers) {
    this.#client = client;
    this.#clock = clock;
    this.#servers = servers;
    this.#stopListening = listenInRoot(client, { close: this.#forget, ready: this.#readAhead });
  }

  /**
   * On our clock, at the latest. Who asks because of a reply asks about its connection: that of a later one tells no less.
   *
   * @throws {LockMisconfiguredError} where the server does not tell, or is one of the others
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
    const asked: Promise<number> = this.#client.call("info", "server").then(
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
  const isReply = error instanceof Error && error.name === "ReplyError";
  return isReply && !FOR_NOW.test(error.message)
    ? unreadable(errorMessage(translateError(error)), error)
    : translateError(error);
}

function unreadable(reason: string, cause?: unknown): LockMisconfiguredError {
  return new LockMisconfiguredError(
    `its uptime cannot be read (${reason}). A short uptime shows that a master has lost its locks. Fix: let the Redis user run INFO`,
    { cause },
  );
}
