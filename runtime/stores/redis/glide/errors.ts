import { ConnectionClosedError } from "../client-port";
import { errorOf, REPLY_ERROR } from "../errors";
import { permanent } from "../states";

/** The kinds of error replies that GLIDE knows, with the code that Redis sends for each. GLIDE removes the code from the message. */
const CODES: Readonly<Record<string, string>> = {
  ResponseError: "ERR",
  ExecAbortError: "EXECABORT",
  BusyLoadingError: "LOADING",
  NoScriptError: "NOSCRIPT",
  Moved: "MOVED",
  Ask: "ASK",
  TryAgain: "TRYAGAIN",
  ClusterDown: "CLUSTERDOWN",
  CrossSlot: "CROSSSLOT",
  MasterDown: "MASTERDOWN",
  ReadOnly: "READONLY",
  NotBusy: "NOTBUSY",
  PermissionDenied: "NOPERM",
};

/** The message of a reply of a known kind: `An error was signalled by the server: - NoScriptError: No matching script.` */
const KNOWN = /^An error was signalled by the server:?\s*- (\w+)(?:: (.*))?$/s;
/** The text that GLIDE adds to a redirection that it could not follow. */
const ADDED = /; ExtensionError$/;
/** The message of any other reply: `WRONGTYPE: Operation against a key holding the wrong kind of value`. */
const OTHER = /^([A-Z][A-Z0-9_]*): (.*)$/s;

/** Returns an error of GLIDE in the form of the port. */
export function portError(thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const [, kind, detail = ""] = KNOWN.exec(error.message) ?? [];
  if (kind !== undefined) return replyError(`${CODES[kind] ?? "ERR"} ${detail.replace(ADDED, "")}`, error);
  const [, code, text = ""] = OTHER.exec(error.message) ?? [];
  return code === undefined ? error : replyError(`${code} ${text}`, error);
}

/** Returns the error of a command over a connection of our own. */
export function ownError(thrown: unknown): Error {
  const error = portError(thrown);
  return error.name === REPLY_ERROR ? error : new ConnectionClosedError(error.message, { cause: error });
}

/** Returns an error reply with the text that Redis sent. The `name` of GLIDE's own errors cannot be changed. */
export function replyError(text: string, cause?: Error): Error {
  const error = new Error(text, { cause });
  error.name = REPLY_ERROR;
  return error;
}

/** Returns why the client can never send a command again, or undefined if it can. */
export function faultOf(error: Error): Error | undefined {
  if (INFO_DENIED.test(error.message)) return errorOf(NO_INFO);
  return isClosing(error) ? errorOf(CLOSED) : undefined;
}

/** Whether the client is closed, and sends no command anymore. */
export function isClosing(error: unknown): boolean {
  return error instanceof Error && error.name === "ClosingError";
}

/** Whether the command had no reply in time. It may still run. */
export function isTimeout(error: Error): boolean {
  return error.name === "TimeoutError";
}

/** GLIDE sends INFO whenever it connects. With `lazyConnect`, the first command reports that, and otherwise createClient(). */
const INFO_DENIED = /connect.*no permissions to run the 'info' command/is;
const NO_INFO = permanent("the Redis user may not run INFO, which GLIDE needs to connect", "grant it +info");

const CLOSED = permanent(
  "the Redis client was closed by close()",
  "call shutdown() before you close the client",
);

/** A command was not sent, because too many others have no reply yet. */
export class OverLimitError extends Error {
  constructor() {
    super("too many other commands of this client have no reply yet");
  }
}

/** Whether the command was not sent, because too many others have no reply yet. */
export function isOverLimit(error: Error): boolean {
  return error instanceof OverLimitError || error.message.startsWith("Reached maximum inflight requests");
}
