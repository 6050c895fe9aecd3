import { systemClock } from "../../../base/clock";
import { isOverLimit, OverLimitError } from "./errors";

/** The share of the client's limit that the store uses. The application sends its own commands over the same client. */
const SHARE = 0.5;
const DEFAULT_LIMIT = 1_000;
/** The pause after GLIDE rejected a command, before the command is sent again. */
const AGAIN_MS = 10;

/** Limits how many commands have no reply yet. GLIDE would reject a command beyond its own limit, so later commands wait here. */
export class InFlight {
  readonly #most: number;
  /** Each starts a command that waits for room. */
  readonly #waiting = new Set<() => void>();
  #count = 0;

  /** @param limit the `inflightRequestsLimit` of the client */
  constructor(limit = DEFAULT_LIMIT) {
    this.#most = Math.max(Math.floor(limit * SHARE), 1);
  }

  /** Calls `send` when there is room. Rejects if there is none in time. */
  async run<Reply>(send: () => Promise<Reply>, timeoutMs: number): Promise<Reply> {
    const until = systemClock.now() + timeoutMs;
    if (this.#count >= this.#most) await this.#room(timeoutMs);
    else this.#count += 1;
    try {
      for (;;) {
        try {
          return await send();
        } catch (error) {
          if (!(error instanceof Error) || !isOverLimit(error)) throw error;
          if (systemClock.now() > until) throw new OverLimitError();
          await new Promise<void>((resolve) => systemClock.afterInBackground(AGAIN_MS, resolve));
        }
      }
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#count -= 1;
      else next();
    }
  }

  /** Resolves when the command takes the room of another one. */
  #room(timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        cancel();
        this.#waiting.delete(go);
        how();
      };
      const go = (): void => settle(resolve);
      const cancel = systemClock.afterInBackground(timeoutMs, () =>
        settle(() => reject(new OverLimitError())),
      );
      this.#waiting.add(go);
    });
  }
}
