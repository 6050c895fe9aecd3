import { runInPromiseJob } from "../../root-context";
import { MOST_AT_ONCE } from "../port";

type Send<Request, Reply> = (request: Request, timeoutMs: number) => Promise<Reply>;

interface Asked<Request, Reply> {
  readonly request: Request;
  readonly timeoutMs: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends what is asked for in one tick of the event loop by one command, where there is one for many. */
export class Together<Request, Reply> {
  readonly #sendOne: Send<Request, Reply>;
  readonly #sendMany: Send<readonly Request[], readonly (Reply | Error)[]> | undefined;
  #asked: Asked<Request, Reply>[] = [];

  constructor(
    sendOne: Send<Request, Reply>,
    sendMany: Send<readonly Request[], readonly (Reply | Error)[]> | undefined,
  ) {
    this.#sendOne = sendOne;
    this.#sendMany = sendMany;
  }

  ask(request: Request, timeoutMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#asked.push({ request, timeoutMs, resolve, reject }) === 1) runInPromiseJob(this.#flush);
    });
  }

  readonly #flush = (): void => {
    const asked = this.#asked;
    this.#asked = [];
    for (let at = 0; at < asked.length; at += MOST_AT_ONCE) this.#carry(asked.slice(at, at + MOST_AT_ONCE));
  };

  #carry(asked: readonly Asked<Request, Reply>[]): void {
    if (asked.length === 1 || this.#sendMany === undefined) {
      for (const { request, timeoutMs, resolve, reject } of asked)
        this.#sendOne(request, timeoutMs).then(resolve, reject);
      return;
    }
    const requests = asked.map(({ request }) => request);
    const timeoutMs = Math.max(...asked.map((one) => one.timeoutMs));
    this.#sendMany(requests, timeoutMs).then(
      (replies) =>
        asked.forEach(({ resolve, reject }, index) => {
          const reply = replies[index] ?? new Error("it was not answered");
          if (reply instanceof Error) reject(reply);
          else resolve(reply);
        }),
      (error: unknown) => asked.forEach(({ reject }) => reject(error)),
    );
  }
}
