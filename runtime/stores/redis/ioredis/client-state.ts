import type { RedisClient } from "../client";
import { errorOf } from "../errors";
import { permanent } from "../states";
import { faultOfTls } from "../tls-options";

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
  if (mode === "monitor") return errorOf(STATES.monitor, cause);
  if (mode === "subscriber" && cause.message.includes("subscriber mode")) {
    return errorOf(STATES.subscriber, cause);
  }
  if (status !== "end") return undefined;
  const { retryStrategy, clusterRetryStrategy = retryStrategy, tls } = options;
  const hasGivenUp = retryAttempts > 0 || typeof clusterRetryStrategy !== "function";
  return faultOfTls(tls) ?? errorOf(hasGivenUp ? STATES.gaveUp : STATES.quit, cause);
}

/** States that an ioredis client shows without a command. */
const STATES = {
  quit: permanent(
    "the Redis client was closed by quit() or disconnect()",
    "call shutdown() before you close the client",
  ),
  gaveUp: permanent(
    "the Redis client stopped reconnecting",
    "change its retryStrategy to always return a number, and create a new client",
  ),
  subscriber: permanent(
    "the Redis client is in subscriber mode, where it cannot send lock commands",
    "give Lockweave its own client: client.duplicate()",
  ),
  monitor: permanent(
    "the Redis client is in monitor mode, where it cannot send lock commands",
    "give Lockweave its own client: client.duplicate({ monitor: false })",
  ),
} as const;
