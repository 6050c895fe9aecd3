import type { RedisClient } from "./client";
import { errorOf } from "./errors";
import { CLIENT_STATES } from "./states";
import { faultOfTls } from "./tls-options";

/** The state that an ioredis client shows, besides the part that the store needs. */
interface Inside {
  readonly status?: string;
  readonly mode?: string;
  readonly retryAttempts?: number;
  readonly options: {
    readonly retryStrategy?: unknown;
    readonly clusterRetryStrategy?: unknown;
    readonly tls?: unknown;
  };
}

/**
 * Returns why the client can never send a command again, or undefined if it can.
 *
 * @param cause the error of the client itself
 */
export function faultOfClient(client: RedisClient, cause: Error): Error | undefined {
  const { status, mode, retryAttempts = 0, options } = client as Inside;
  if (mode === "monitor") return errorOf(CLIENT_STATES.monitor, cause);
  if (mode === "subscriber" && cause.message.includes("subscriber mode")) {
    return errorOf(CLIENT_STATES.subscriber, cause);
  }
  if (status !== "end") return undefined;
  const { retryStrategy, clusterRetryStrategy = retryStrategy, tls } = options;
  const hasGivenUp = retryAttempts > 0 || typeof clusterRetryStrategy !== "function";
  return faultOfTls(tls) ?? errorOf(hasGivenUp ? CLIENT_STATES.gaveUp : CLIENT_STATES.quit, cause);
}
