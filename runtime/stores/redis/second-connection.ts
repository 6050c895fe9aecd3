import { afterIo, type Clock } from "../../clock";
import { listenInRoot } from "../../root-context";
import type { Duplicable, OwnConnection } from "./client";

/** A connection that is made for one question, and ends with it. */
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

/** What a pause of writes holds back as well, and a PING does not. */
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
   * Calls `onAnswer` when the server answers a PING, and a script, since a server whose writes are paused answers only
   * the first; and then another PING. When a pause ends, Redis writes to its clients in any order, but it writes to all of
   * them before it reads the next command. So the last answer comes after what the server owed to the first connection.
   * One question is open at a time.
   */
  ask(onAnswer: () => void): void {
    if (this.#open !== undefined) return;
    const second = this.#client.duplicate(ONCE);
    this.#open = second;
    listenInRoot(second, {
      error() {}, // The server does not answer, then.
      end: () => this.#end(second),
    });
    const answered = (): void => {
      // What has come over the first connection at the same time is to be read before.
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

/** Also an error of the server is an answer. */
function answerOf(asked: Promise<unknown>): Promise<boolean> {
  return asked.then(
    () => true,
    (error: unknown) => error instanceof Error && error.name === "ReplyError",
  );
}
