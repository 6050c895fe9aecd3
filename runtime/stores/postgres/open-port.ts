import { errorMessage, LockOptionError } from "../../base/errors";
import { inRoot } from "../../base/root-context";
import type { LibraryLog } from "../load-library";
import type { PostgresPort } from "./client-port";
import type { ConnectionListeners, OpenConnection, Source } from "./connection";
import { Connections } from "./connections";
import { LatePort } from "./late-port";
import { at, beside } from "./recognize-client";
import type { ReadTarget } from "./target";

/**
 * Returns the connections for a target. They open when they are needed. In the ES module, the client library loads asynchronously.
 *
 * @param what the name of the target in `configure()`, for messages
 * @throws {LockOptionError} if the library cannot read a URL. In the ES module, the first statement rejects instead
 * @throws {LockMisconfiguredError} if no client library is installed. In the ES module, the first statement rejects instead
 */
export function openPort(target: ReadTarget, what: string, log?: LibraryLog): PostgresPort {
  const { server } = target;
  return inRoot(() => {
    const source = typeof server === "string" ? at(server, log) : beside(server);
    if (!(source instanceof Promise)) return portOver(source, target, what);
    const opening = source.then((loaded) => portOver(loaded, target, what));
    opening.catch((error: unknown) => log?.warn(errorMessage(error))); // A lock rejects with this error, too.
    return new LatePort(opening);
  });
}

function portOver(
  source: Source,
  { server, listenUrl, connections }: ReadTarget,
  what: string,
): PostgresPort {
  const openListening: OpenConnection =
    listenUrl === undefined ? source.open : (listeners) => source.openAt(listenUrl, listeners);
  if (typeof server === "string") assertReadable(source.open, what);
  if (listenUrl !== undefined) assertReadable(openListening, `${what}.listenUrl`);
  return new Connections(source.open, connections, openListening);
}

const NOBODY: ConnectionListeners = { ended() {}, notified() {}, warned() {} };

/** Creates a connection that never connects, so that `configure()` reports a URL that the library cannot read. */
function assertReadable(open: OpenConnection, what: string): void {
  try {
    open(NOBODY).destroy();
  } catch {
    // The error must not be the cause: it may contain the password.
    throw new LockOptionError(
      `Expected \`${what}\` to be a valid URL, such as postgres://user:password@host:5432/database. Fix: encode \`@\`, \`/\`, \`?\`, \`#\`, and \`%\` in a password with encodeURIComponent()`,
    );
  }
}
