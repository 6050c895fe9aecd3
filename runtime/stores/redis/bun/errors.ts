import { REPLY_ERROR } from "../errors";

/** The codes of error replies: of a command, of AUTH, and of SELECT. All other errors with a code are about the connection. */
const REPLY_CODES: ReadonlySet<string> = new Set([
  "ERR_REDIS_SERVER_ERROR",
  "ERR_REDIS_AUTHENTICATION_FAILED",
  "ERR_REDIS_INVALID_COMMAND",
]);

/** Returns an error of Bun's client in the form of the port. */
export function portError(thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if ("code" in error && REPLY_CODES.has(String(error.code))) error.name = REPLY_ERROR;
  return error;
}

/** Whether the client was closed or stopped reconnecting. All errors about the connection have the same code. */
export function isFinal({ message }: Error): boolean {
  return message === "Connection has failed" || message === "Max reconnection attempts reached";
}
