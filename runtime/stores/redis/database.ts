import { listenInRoot } from "../../root-context";
import type { RedisClient } from "./client";
import { translateError } from "./errors";

/** In which database a client works: a `select()` at run time is not among its options. */
export function databaseOf(client: RedisClient): number {
  const { condition } = client as { readonly condition?: { readonly select?: number } | null };
  return condition?.select ?? client.options.db ?? 0;
}

/**
 * Where the SELECT of its handshake fails, ioredis tells it by an "error" and goes on in database 0. The same key is
 * another lock there: nothing may be sent until a new connection is where it should be.
 */
export class Database {
  /** Why the connection is to another database. */
  fault: Error | undefined;
  readonly #stopListening: () => void = () => {};

  constructor(client: RedisClient) {
    if ((client.options.db ?? 0) === 0) return;
    this.#stopListening = listenInRoot(client, { connect: this.#forget, error: this.#hear });
  }

  close(): void {
    this.#stopListening();
  }

  readonly #forget = (): void => {
    this.fault = undefined;
  };

  readonly #hear = (error: Error & { readonly command?: { readonly name?: string } }): void => {
    if (error.command?.name === "select") this.fault = translateError(error);
  };
}
