import { afterIo, type Clock } from "../../base/clock";
import type { ClientPort, OwnConnection } from "./client-port";
import type { Command } from "./command";
import { isReply } from "./errors";

const PING: Command = { name: "ping", keys: [], args: [] };
/** A script that changes nothing. A pause of writes also delays scripts, but not a PING. */
const NO_OP: Command = { name: "eval", keys: [], args: ["return 1", 0] };

/** A connection that does not answer for this long may be dead, too. The next check opens another one. */
const GIVE_UP_MS = 10_000;

/** Asks over a second connection whether the server answers while the first one is silent. */
export class SecondConnection {
  readonly #clock: Clock;
  readonly #client: ClientPort;
  #open: OwnConnection | undefined;

  constructor(clock: Clock, client: ClientPort) {
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
    const second = this.#client.openOwn?.({
      onEnd: () => {
        if (this.#open === second) this.#open = undefined;
      },
    });
    if (second === undefined) return;
    this.#open = second;
    const answered = (): void => {
      // Data that has arrived on the first connection at the same time must be read first.
      afterIo(this.#clock, () => {
        if (this.#open !== second) return;
        this.close();
        onAnswer();
      });
    };
    const cancel = this.#clock.afterInBackground(GIVE_UP_MS, () => {
      if (this.#open === second) this.close();
    });
    void answers(second)
      .finally(cancel)
      .then((isAnswered) => isAnswered && answered());
  }

  close(): void {
    const second = this.#open;
    this.#open = undefined;
    second?.close();
  }
}

async function answers(second: OwnConnection): Promise<boolean> {
  return (await answersAll(second, [PING, NO_OP])) && (await answersAll(second, [PING]));
}

/** Resolves to whether the server answered all commands. An error reply is an answer, too. */
async function answersAll(second: OwnConnection, commands: readonly Command[]): Promise<boolean> {
  const replies = await second.exec(commands).catch(() => [undefined]);
  return replies.every((reply) => reply !== undefined && (!(reply instanceof Error) || isReply(reply)));
}
