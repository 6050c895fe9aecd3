interface Pending<Request, Reply> {
  readonly request: Request;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** How a batch is sent: one request for itself, or several together, with one reply or error for each. */
export interface Sending<Request, Reply> {
  readonly one: (request: Request) => Promise<Reply>;
  readonly many: (requests: readonly Request[]) => Promise<readonly (Reply | Error)[]>;
}

/**
 * Sends what is asked within one turn of the event loop together, in the order in which it was asked. One that is
 * alone is sent in the same turn all the same.
 */
export class Batch<Request, Reply> {
  readonly #most: number;
  readonly #send: Sending<Request, Reply>;
  #pending: Pending<Request, Reply>[] = [];

  constructor(most: number, send: Sending<Request, Reply>) {
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
      const [first, ...others] = pending.slice(from, from + this.#most);
      if (first === undefined) return;
      if (others.length === 0) this.#send.one(first.request).then(first.resolve, first.reject);
      else void this.#together([first, ...others]);
    }
  }

  async #together(pending: readonly Pending<Request, Reply>[]): Promise<void> {
    try {
      const replies = await this.#send.many(pending.map(({ request }) => request));
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
