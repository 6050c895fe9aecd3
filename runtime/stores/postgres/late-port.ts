import { systemClock } from "../../base/clock";
import { asError } from "../../base/errors";
import { inRoot } from "../../base/root-context";
import type { NotificationListeners, PostgresPort, PostgresRow, Subscription } from "./client-port";

/** Opens connections once the client library has loaded. Until then, statements wait. If the library is missing, they reject. */
export class LatePort implements PostgresPort {
  readonly #opening: Promise<PostgresPort>;
  #closing: Promise<void> | undefined;

  constructor(opening: Promise<PostgresPort>) {
    this.#opening = opening;
    this.#opening.catch(() => {}); // A statement rejects with this error.
  }

  async query(
    text: string,
    values: readonly unknown[],
    timeoutMs: number,
    isUrgent?: boolean,
  ): Promise<readonly PostgresRow[]> {
    const startedAt = systemClock.now();
    const port = await this.#opening;
    const leftMs = timeoutMs - (systemClock.now() - startedAt);
    if (leftMs <= 0) throw new Error("the PostgreSQL client was still loading");
    return await port.query(text, values, leftMs, isUrgent);
  }

  listen(channel: string, listeners: NotificationListeners): Subscription {
    let subscription: Subscription | undefined;
    let isClosed = false;
    const open = (port: PostgresPort): void => {
      if (!isClosed) subscription = port.listen(channel, listeners);
    };
    inRoot(() => void this.#opening.then(open, (error: unknown) => listeners.failed(asError(error))));
    return {
      ping: () => subscription?.ping(),
      replace: () => subscription?.replace(),
      close() {
        isClosed = true;
        subscription?.close();
      },
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#opening.then(
      (port) => port.close(),
      () => {},
    );
    return this.#closing;
  }
}
