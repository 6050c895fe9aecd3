import { LockMisconfiguredError } from "../../errors";
import { STATES_BY_REPLY, STATES_BY_TEXT, type State } from "./states";

/** Whether the server is too old for `SET ... NX GET`. */
export function isBeforeRedis7(error: unknown): boolean {
  return error instanceof Error && /^ERR .*syntax error/.test(error.message);
}

/** Whether the server does not know the script: it never carried it out. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Whether the server is too old for the command. */
export function isUnknownCommand(error: unknown): boolean {
  return error instanceof Error && /^ERR unknown command/i.test(error.message);
}

/** Whether the key's slot, or the channel's, is with another node of the cluster. */
export function isMoved(error: unknown): error is Error {
  return error instanceof Error && error.message.startsWith("MOVED ");
}

/** Whether a server said something without having been asked, as ioredis tells it that does not expect that. */
export function isUnaskedReply(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Command queue state error");
}

/** Whether the user may not do what was asked for. */
export function isDenied(error: unknown): boolean {
  return error instanceof Error && refusalOf(error) === "NOPERM";
}

/** Whether the key holds other data than text. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && refusalOf(error) === "WRONGTYPE";
}

/** Whether the server is a replica, to which nothing can be written. */
export function isReadOnly(error: unknown): error is Error {
  return error instanceof Error && refusalOf(error) === "READONLY";
}

/** Whether the password was refused, which may be one that is about to change. */
export function isWrongPassword(error: unknown): boolean {
  return error instanceof Error && refusalOf(error) === "WRONGPASS";
}

/** Before Redis 7, an error inside a script comes in a sentence about the script. */
const REFUSAL = /^(?:ERR )?(?:.*?@?user_script: ?\d+: )?-?([A-Z]+)\b/;

/** What the user may not do inside a script is told without the word NOPERM: by Redis 7.0, and by later ones. */
const DENIED_IN_SCRIPT = /The user executing the script can't|ACL failure in script/;

function refusalOf({ message }: Error): string | undefined {
  return DENIED_IN_SCRIPT.test(message) ? "NOPERM" : REFUSAL.exec(message)?.[1];
}

/** What is wrong, as far as the error tells. */
function stateOf(error: Error): State | undefined {
  const byText = STATES_BY_TEXT.find(([text]) => text.test(error.message));
  return byText?.[1] ?? STATES_BY_REPLY[refusalOf(error) ?? ""];
}

/** An error of a store that names what is wrong and what to do about it, and that may pass. */
class PassingError extends Error {
  override readonly name = "PassingError";
}

/** The error as the runtime is to see it: what is known to be wrong is named, with what to do about it. */
export function translateError(thrown: unknown): Error {
  if (thrown instanceof LockMisconfiguredError || thrown instanceof PassingError) return thrown;
  const error = withoutArguments(thrown instanceof Error ? thrown : new Error(String(thrown)));
  const state = stateOf(error);
  return state === undefined ? error : errorOf(state, error);
}

/** @param cause what the client or the server said, if anything */
export function errorOf({ mayPass, what, fix }: State, cause?: Error): Error {
  const said = cause === undefined ? "" : ` (${cause.message})`;
  const message = `${what}${said}. Fix: ${fix}`;
  return mayPass ? new PassingError(message, { cause }) : new LockMisconfiguredError(message, { cause });
}

/** The same state, of which more is known: it may pass after all. */
export function passing(error: Error): Error {
  return error instanceof LockMisconfiguredError
    ? new PassingError(error.message, { cause: error.cause })
    : error;
}

/** The client hangs the command on an error reply, and with it the password that AUTH or HELLO was sent with. */
function withoutArguments(error: Error): Error {
  if (!("command" in error)) return error;
  const copy = new Error(error.message);
  copy.name = error.name;
  if (error.stack !== undefined) copy.stack = error.stack;
  return copy;
}
