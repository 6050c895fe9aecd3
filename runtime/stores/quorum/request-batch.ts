import { partsOf, TickBatch } from "../../base/tick-batch";
import { MOST_AT_ONCE } from "../port";

type Send<Request, Reply> = (request: Request, timeoutMs: number) => Promise<Reply>;

interface Pending<Request, Reply> {
  readonly request: Request;
  readonly timeoutMs: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends the requests of one tick of the event loop together, if the store has a command for many. */
export class RequestBatch<Request, Reply> {
  readonly #sendOne: Send<Request, Reply>;
  readonly #sendMany: Send<readonly Request[], readonly (Reply | Error)[]> | undefined;
  readonly #pending = new TickBatch<Pending<Request, Reply>>((pending) => {
    for (const some of partsOf(pending, MOST_AT_ONCE)) this.#send(some);
  });

  constructor(
    sendOne: Send<Request, Reply>,
    sendMany: Send<readonly Request[], readonly (Reply | Error)[]> | undefined,
  ) {
    this.#sendOne = sendOne;
    this.#sendMany = sendMany;
  }

  ask(request: Request, timeoutMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#pending.add({ request, timeoutMs, resolve, reject }, true);
    });
  }

  #send(pending: readonly Pending<Request, Reply>[]): void {
    if (pending.length === 1 || this.#sendMany === undefined) {
      for (const { request, timeoutMs, resolve, reject } of pending)
        this.#sendOne(request, timeoutMs).then(resolve, reject);
      return;
    }
    const requests = pending.map(({ request }) => request);
    const timeoutMs = Math.max(...pending.map((one) => one.timeoutMs));
    this.#sendMany(requests, timeoutMs).then(
      (replies) =>
        pending.forEach(({ resolve, reject }, index) => {
          const reply = replies[index] ?? new Error("it was not answered");
          if (reply instanceof Error) reject(reply);
          else resolve(reply);
        }),
      (error: unknown) => pending.forEach(({ reject }) => reject(error)),
    );
  }
}
