interface Pending<Request, Reply> {
  readonly request: Request;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends what is asked within one turn of the event loop together, in the order in which it was asked. One that is
 * alone is sent in the same turn all the same.
 */
export class Batch<Request, Reply> {
  readonly #most: number;
  readonly #send: (requests: Request[]) => Promise<readonly (Reply | Error)[]>;
  #pending: Pending<Request, Reply>[] = [];

  /** @param send gives one reply, or one error, for each request */
  constructor(most: number, send: (requests: Request[]) => Promise<readonly (Reply | Error)[]>) {
    this.#most = most;
    this.#send = send;
  }

  ask(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const count = this.#pending.push({ request, resolve, reject });
      // The ticks come after all promise jobs that are due: callers whom one reply woke meet here.
      if (count === 1) process.nextTick(() => this.#flush());
    });
  }

  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (let from = 0; from < pending.length; from += this.#most) {
      void this.#together(pending.slice(from, from + this.#most));
    }
  }

  async #together(pending: readonly Pending<Request, Reply>[]): Promise<void> {
    try {
      const replies = await this.#send(pending.map(({ request }) => request));
      pending.forEach(({ resolve, reject }, index) => {
        const reply = replies[index];
        if (reply === undefined) reject(new Error("the store sent fewer replies than it was asked for"));
        else if (reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }
}
