import { afterIo, type Clock } from "../../base/clock";
import { listenInRoot } from "../../base/root-context";
import type { Duplicable, OwnConnection } from "./client";

/** Options of a connection that serves one check, and is then closed. */
const ONCE = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: true,
  enableReadyCheck: false,
  maxRetriesPerRequest: null,
  failoverDetector: false,
  lazyConnect: false,
  keyPrefix: "",
  retryStrategy: (): null => null,
} as const;

/** A script that changes nothing. A pause of writes also delays scripts, but not a PING. */
const NO_OP_SCRIPT = "return 1";

/** Asks over a second connection whether the server answers while the first one is silent. */
export class SecondConnection {
  readonly #clock: Clock;
  readonly #client: Duplicable;
  #open: OwnConnection | undefined;

  constructor(clock: Clock, client: Duplicable) {
    this.#clock = clock;
    this.#client = client;
  }

  /**
   * Calls `onAnswer` once the server has answered a PING and a script, and then another PING. A server whose writes are paused answers a
   * PING, but not the script. When a pause ends, Redis writes to its clients in any order, but writes to all of them before it reads the
   * next command. So the answer to the last PING comes after all replies that the server owed to the first connection. Only one check is
   * under way at a time.
   */
  ask(onAnswer: () => void): void {
    if (this.#open !== undefined) return;
    const second = this.#client.duplicate(ONCE);
    this.#open = second;
    listenInRoot(second, {
      error() {}, // A connection error is no answer.
      end: () => this.#end(second),
    });
    const answered = (): void => {
      // Data that has arrived on the first connection at the same time must be read first.
      afterIo(this.#clock, () => {
        if (this.#open !== second) return;
        this.close();
        onAnswer();
      });
    };
    void answersOf(second).then((isAnswered) => isAnswered && answered());
  }

  close(): void {
    const second = this.#open;
    this.#open = undefined;
    second?.disconnect();
  }

  #end(second: OwnConnection): void {
    if (this.#open === second) this.#open = undefined;
  }
}

async function answersOf(second: OwnConnection): Promise<boolean> {
  const first = await Promise.all([
    answerOf(second.call("ping")),
    answerOf(second.call("eval", NO_OP_SCRIPT, 0)),
  ]);
  return first.every(Boolean) && (await answerOf(second.call("ping")));
}

/** Resolves to whether the server answered. An error reply is an answer, too. */
function answerOf(reply: Promise<unknown>): Promise<boolean> {
  return reply.then(
    () => true,
    (error: unknown) => error instanceof Error && error.name === "ReplyError",
  );
}
