import { listenInRoot } from "../../../base/root-context";
import type { RedisClient } from "../client";
import { translateError } from "../errors";

/** Returns the database that a client uses. A `select()` at run time does not change the client's options. */
export function databaseOf(client: RedisClient): number {
  const { condition } = client as { readonly condition?: { readonly select?: number } | null };
  return condition?.select ?? client.options.db ?? 0;
}

/**
 * Detects that a connection uses the wrong database. If the SELECT of its handshake fails, ioredis emits an "error" and continues in
 * database 0. The same key is another lock there, so nothing may be sent until a new connection uses the right database.
 */
export class Database {
  /** The reason why the connection uses the wrong database, if it does. */
  fault: Error | undefined;
  readonly #stopListening: () => void = () => {};

  constructor(client: RedisClient) {
    if ((client.options.db ?? 0) === 0) return;
    this.#stopListening = listenInRoot(client, { connect: this.#onConnect, error: this.#onError });
  }

  close(): void {
    this.#stopListening();
  }

  readonly #onConnect = (): void => {
    this.fault = undefined;
  };

  readonly #onError = (error: Error & { readonly command?: { readonly name?: string } }): void => {
    if (error.command?.name === "select") this.fault = translateError(error);
  };
}
