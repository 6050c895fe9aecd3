import { LockMisconfiguredError } from "../../base/errors";
import { STATES_BY_REPLY, STATES_BY_TEXT, UNKNOWN_COMMAND, type State } from "./states";

/** The `name` of every error reply of the server. If a client library uses another name, its adapter renames the error. */
export const REPLY_ERROR = "ReplyError";

/** Whether the server replied with this error. All other errors come from the client. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === REPLY_ERROR;
}

/** Whether the server is too old for `SET ... NX GET`. */
export function isBeforeRedis7(error: unknown): boolean {
  return error instanceof Error && /^ERR .*syntax error/.test(error.message);
}

/** Whether the server does not have the script, so that it did not run it. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Whether the server does not have the command: it is too old, or a proxy or its administrator removed the command. */
export function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && UNKNOWN_COMMAND.test(error.message);
}

/** Whether another node of the cluster serves the slot of the key or the channel. */
export function isMoved(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith("MOVED ");
}

/** Whether the user may not run the command, or not on this key or channel. */
export function isDenied(error: unknown): boolean {
  return error instanceof Error && errorCodeOf(error) === "NOPERM";
}

/** Whether the data of the key is not text. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && errorCodeOf(error) === "WRONGTYPE";
}

/** Whether the server is a replica, which accepts no writes. */
export function isReadOnly(error: unknown): error is Error {
  return error instanceof Error && errorCodeOf(error) === "READONLY";
}

/** Whether the server rejected the password. That may be temporary, if the password is about to change. */
export function isWrongPassword(error: unknown): boolean {
  return error instanceof Error && errorCodeOf(error) === "WRONGPASS";
}

/** The code of an error. Before Redis 7, an error inside a script is part of a sentence about the script. */
const ERROR_CODE = /^(?:ERR )?(?:.*?@?user_script: ?\d+: )?-?([A-Z]+)\b/;

/** The errors of Redis 7.0, and of later versions, if the user may not run a command inside a script. They have no code NOPERM. */
const DENIED_IN_SCRIPT = /The user executing the script can't|ACL failure in script/;

function errorCodeOf({ message }: Error): string | undefined {
  return DENIED_IN_SCRIPT.test(message) ? "NOPERM" : ERROR_CODE.exec(message)?.[1];
}

/** Returns the known state that the error reports, if any. */
function stateOf(error: Error): State | undefined {
  const byText = STATES_BY_TEXT.find(([text]) => text.test(error.message));
  return byText?.[1] ?? STATES_BY_REPLY[errorCodeOf(error) ?? ""];
}

/** The arguments at the end of the error of an unknown command, such as the text of a script. */
const ARGUMENTS = /(unknown command [^,]*), with args .*$/is;

/** The place in a script at the end of an error, which says nothing to users. */
const PLACE_IN_SCRIPT = / script: [0-9a-f]{40}, on @user_script:\d+\.$/;

/** An error of a store that says what is wrong and what to do. Its cause may be temporary. */
class PassingError extends Error {
  override readonly name = "PassingError";
}

/** Returns the error for the runtime. If the state is known, the error says what is wrong and what to do. */
export function translateError(thrown: unknown): Error {
  if (thrown instanceof LockMisconfiguredError || thrown instanceof PassingError) return thrown;
  const error = withoutArguments(thrown instanceof Error ? thrown : new Error(String(thrown)));
  const state = stateOf(error);
  return state === undefined ? error : errorOf(state, error);
}

/** @param cause the error of the client or the server, if there is one */
export function errorOf({ mayPass, what, fix }: State, cause?: Error): Error {
  const said =
    cause === undefined ? "" : ` (${cause.message.replace(ARGUMENTS, "$1").replace(PLACE_IN_SCRIPT, "")})`;
  const message = `${what}${said}. Fix: ${fix}`;
  return mayPass ? new PassingError(message, { cause }) : new LockMisconfiguredError(message, { cause });
}

/** Returns the error of a command whose connection closed before the reply. */
export function connectionBroke(cause?: Error): Error {
  return new Error("the connection to Redis broke", { cause });
}

/** Returns the same error, marked as one whose cause may be temporary. */
export function passing(error: Error): Error {
  return error instanceof LockMisconfiguredError
    ? new PassingError(error.message, { cause: error.cause })
    : error;
}

/** Returns the error without its command, which a client may attach. The command may contain the password of AUTH or HELLO. */
function withoutArguments(error: Error): Error {
  if (!("command" in error)) return error;
  const copy = new Error(error.message);
  copy.name = error.name;
  if (error.stack !== undefined) copy.stack = error.stack;
  return copy;
}
