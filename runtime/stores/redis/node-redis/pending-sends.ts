import { afterIo, systemClock } from "../../../base/clock";

/** The share of its timeout for which a command waits for a connection. */
const CONNECT_TIME_SHARE = 0.9;

interface PendingSend {
  readonly go: () => void;
  readonly fail: (cause: Error) => void;
}

/** The commands that wait for a connection, in order. */
export class PendingSends {
  readonly #all = new Set<PendingSend>();

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /**
   * Resolves when the command may be sent. Rejects if that takes too long.
   *
   * @param missing returns why it took too long
   */
  add(timeoutMs: number, missing: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        cancel();
        this.#all.delete(pending);
        how();
      };
      const pending: PendingSend = {
        go: () => settle(resolve),
        fail: (cause) => settle(() => reject(cause)),
      };
      const cancel = systemClock.afterInBackground(timeoutMs * CONNECT_TIME_SHARE, () =>
        afterIo(systemClock, () => pending.fail(missing())),
      );
      this.#all.add(pending);
    });
  }

  /** Lets all commands be sent. */
  go(): void {
    for (const { go } of this.#all) go();
  }

  fail(cause: Error): void {
    for (const { fail } of this.#all) fail(cause);
  }
}
