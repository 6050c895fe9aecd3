import { systemClock } from "../../base/clock";
import { blockingMsOf, type SentCommand } from "./blocking-command";
import type { ClientPort, Transport } from "./client-port";
import type { Command } from "./command";
import { errorOf, isMoved, isReadOnly, isReply } from "./errors";
import { SecondConnection } from "./second-connection";
import { SILENT_MS, Silence } from "./silence";
import { oneOfCluster } from "./states";

/** A client that belongs to the caller. Reports what is wrong with it, and never changes it. */
export class WatchedClient implements Transport {
  readonly #client: ClientPort;
  readonly #warn: (message: string) => void;
  readonly #second: SecondConnection;
  readonly #silence: Silence;
  readonly #stopListening: () => void;
  #hasWarnedOfRoute = false;
  /** The first command without a reply when the connection was last silent, and a time at which it had none. */
  #first: SentCommand | undefined;
  #firstSince = 0;

  /** @param warn called with a warning, possibly the same one more than once */
  constructor(client: ClientPort, warn: (message: string) => void) {
    this.#client = client;
    this.#warn = warn;
    this.#second = new SecondConnection(systemClock, client);
    this.#silence = new Silence(
      systemClock,
      () => client.bytesRead?.(),
      (isStillSilent) => this.#onSilent(isStillSilent),
    );
    this.#stopListening = client.onState({ down: () => this.#onDown() });
  }

  send(command: Command, timeoutMs: number): Promise<unknown> {
    if (this.#client.fault !== undefined) return Promise.reject(this.#client.fault);
    this.#silence.sent(timeoutMs);
    return this.#client.send(command, timeoutMs).then(this.#onReply, this.#onFailure);
  }

  close(): void {
    this.#stopListening();
    this.#client.close();
    this.#silence.stop();
    this.#second.close();
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#silence.heard();
    if (this.#client.fault !== undefined) throw this.#client.fault;
    if (isReadOnly(Array.isArray(reply) ? reply[0] : reply)) this.#warn(this.#client.advice.demoted);
    return reply;
  };

  readonly #onFailure = (thrown: unknown): never => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    if (isReply(error)) this.#silence.heard();
    if (this.#client.fault !== undefined) throw this.#client.fault;
    if (isReadOnly(error)) this.#warn(this.#client.advice.demoted);
    if (isMoved(error)) throw errorOf(oneOfCluster(this.#client.advice.useCluster), error);
    const fault = this.#client.explain(error);
    if (fault !== undefined) this.#silence.reset(); // The client itself rejected the command, so no reply is due.
    throw fault ?? thrown;
  };

  #onDown(): void {
    this.#silence.reset();
    this.#second.close();
  }

  /**
   * Warns if a new connection gets an answer: then the client's is dead, or a command of the application blocks it. A server that is slow or paused
   * does not answer a new one either.
   */
  #onSilent(isStillSilent: () => boolean): void {
    if (this.#hasWarnedOfRoute || !this.#client.isReady) return;
    const first = this.#client.firstUnanswered?.();
    if (first !== this.#first) {
      this.#first = first;
      this.#firstSince = systemClock.now() - SILENT_MS;
    }
    this.#second.ask(() => {
      if (!isStillSilent()) return;
      const isBlocked = first !== undefined && systemClock.now() - this.#firstSince < blockingMsOf(first);
      if (isBlocked) return this.#warn(blockedBy(first));
      this.#hasWarnedOfRoute = true;
      this.#warn(this.#client.advice.deadRoute);
    });
  }
}

function blockedBy({ name }: SentCommand): string {
  return `Redis answers on a new connection, but not on the client's, because of the blocking command ${name.toUpperCase()} of the application. Locks wait for its end. Fix: give blocking commands a client of their own, such as client.duplicate()`;
}
