import type { Clock } from "../../base/clock";
import { inRoot } from "../../base/root-context";

/** Sends requests in one statement, and resolves to a reply for each. */
type Send<Request> = (requests: readonly Request[], timeoutMs: number) => Promise<readonly unknown[]>;

/** Requests that one caller sends together. */
interface Call<Request> {
  readonly requests: readonly Request[];
  readonly dueAt: number;
  readonly resolve: (replies: readonly unknown[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends the requests of one command. While all connections are busy, further requests gather, and the next statement sends all of them. This
 * saves statements, each of which waits for the disk.
 */
export class Gathering<Request> {
  readonly #send: Send<Request>;
  readonly #mostStatements: number;
  readonly #mostRequests: number;
  readonly #clock: Clock;
  readonly #waiting: Call<Request>[] = [];
  #statements = 0;

  /**
   * @param mostStatements how many statements may run at once
   * @param mostRequests the most requests in one statement
   */
  constructor(send: Send<Request>, mostStatements: number, mostRequests: number, clock: Clock) {
    this.#send = send;
    this.#mostStatements = mostStatements;
    this.#mostRequests = mostRequests;
    this.#clock = clock;
  }

  /** @param requests at most `mostRequests` */
  call(requests: readonly Request[], timeoutMs: number): Promise<readonly unknown[]> {
    if (this.#statements < this.#mostStatements) return this.#run(requests, timeoutMs);
    const dueAt = this.#clock.now() + timeoutMs;
    return new Promise((resolve, reject) => this.#waiting.push({ requests, dueAt, resolve, reject }));
  }

  async #run(requests: readonly Request[], timeoutMs: number): Promise<readonly unknown[]> {
    this.#statements += 1;
    try {
      return await this.#send(requests, timeoutMs);
    } finally {
      this.#statements -= 1;
      // The next statement serves other callers, so nothing of it may run in the context of this one.
      inRoot(() => void this.#runWaiting());
    }
  }

  async #runWaiting(): Promise<void> {
    const now = this.#clock.now();
    const calls = this.#nextCalls(now);
    if (calls.length === 0) return;
    const timeoutMs = calls.reduce((most, { dueAt }) => Math.max(most, dueAt - now), 0);
    try {
      const requests = calls.flatMap((call) => call.requests);
      const replies = await this.#run(requests, timeoutMs);
      let first = 0;
      for (const call of calls) call.resolve(replies.slice(first, (first += call.requests.length)));
    } catch (error) {
      for (const call of calls) call.reject(error);
    }
  }

  /** Removes the calls for the next statement, and rejects those whose time is over. */
  #nextCalls(now: number): readonly Call<Request>[] {
    const calls: Call<Request>[] = [];
    let room = this.#mostRequests;
    for (;;) {
      const [call] = this.#waiting;
      if (call === undefined || call.requests.length > room) return calls;
      this.#waiting.shift();
      if (call.dueAt <= now) call.reject(new Error("all connections to PostgreSQL were busy"));
      else {
        calls.push(call);
        room -= call.requests.length;
      }
    }
  }
}
