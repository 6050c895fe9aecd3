import { ConnectionClosedError } from "../client-port";
import { REPLY_ERROR } from "../errors";

/** Redis begins each error with a code in capitals. node-redis and Node begin theirs with an ordinary word. */
const CODE = /^[A-Z][A-Z0-9_]*(?: |$)/;

/**
 * Returns an error of node-redis in the form of the port. The classes of node-redis cannot be recognized, because nothing here imports them,
 * and a bundler may rename them.
 */
export function portError(thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const isOfSystem = "code" in error; // An error of Node, such as one of TLS.
  if (!isOfSystem && CODE.test(error.message)) error.name = REPLY_ERROR;
  return error;
}

/** Returns the error of a command over a connection that never reconnects. */
export function ownError(thrown: unknown): Error {
  const error = portError(thrown);
  return error.name === REPLY_ERROR ? error : new ConnectionClosedError(error.message, { cause: error });
}
