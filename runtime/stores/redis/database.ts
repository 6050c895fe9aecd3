import type { RedisClient } from "./client";
import { wrapped } from "./errors";

/**
 * Where the SELECT of its handshake fails, ioredis tells it by an "error" and goes on in database 0. The same key is
 * another lock there: nothing may be sent until a new connection is where it should be.
 */
export class Database {
  /** Why the connection is to another database. */
  fault: Error | undefined;
  readonly #client: RedisClient;

  constructor(client: RedisClient) {
    this.#client = client;
    if ((client.options.db ?? 0) === 0) return; // Nothing is selected.
    client.on("connect", this.#forget);
    client.on("error", this.#hear);
  }

  close(): void {
    this.#client.off("connect", this.#forget);
    this.#client.off("error", this.#hear);
  }

  readonly #forget = (): void => {
    this.fault = undefined;
  };

  readonly #hear = (error: Error & { readonly command?: { readonly name?: string } }): void => {
    if (error.command?.name === "select") this.fault = wrapped(error);
  };
}
