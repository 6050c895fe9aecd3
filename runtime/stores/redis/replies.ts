import { formatValue } from "../../base/format-value";
import type { Acquired, NotAcquired, NotHeld, NotReleased, ReleaseReply, Renewed } from "../port";
import { errorOf, isWrongType, translateError } from "./errors";
import type { Server } from "./server";
import { DENIED, INCOMPLETE } from "./states";

// Converts the replies of scripts into the replies of the store.

/** A number in the reply of a script. It is text if the client has the option `stringNumbers`. */
export type Figure = number | string;

/** The value that a script found instead of the expected hold. `null` if the key is free. */
export type Found = string | null | Error;

// Replies without numbers are created once, and shared.
const ACQUIRED: Acquired = { acquired: true };
const RENEWED: Renewed = { renewed: true };
const RELEASED: ReleaseReply = { released: true };
export const TOO_FEW = new Error("Redis sent fewer replies than expected");

/** The holder that is reported for a key whose data is not text. */
const NO_TEXT = "(other data than text)";

/** The error for a reply that no script of ours sends, such as "QUEUED" from a client in the middle of a transaction. */
export function unexpected(reply: unknown): Error {
  return new Error(`Redis sent an unexpected reply to a script: ${formatValue(reply)}`);
}

export function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** Returns one of many replies. Throws it if it is an error. */
export function replyAt(replies: readonly unknown[], index: number): unknown {
  if (index >= replies.length) throw TOO_FEW;
  const reply = replies[index];
  if (reply instanceof Error) throw translateError(reply);
  return reply;
}

/** Returns a reply for each key, as SET would return it, from the reply of a script that acquires many keys. */
export function eachAcquired(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? repeated(null, count) : listOf(reply);
}

/** Returns a reply for each key from the reply of a script for many keys, which is 1 if it succeeded for all keys. */
export function eachReply(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? repeated(reply, count) : listOf(reply);
}

function repeated(reply: unknown, count: number): readonly unknown[] {
  const replies: unknown[] = [];
  while (replies.length < count) replies.push(reply); // Array.from() with a callback takes several times as long.
  return replies;
}

/** Whether a script reports success, for one key or for all. The value of a key never passes for that, because it is in an array. */
export function isOne(reply: unknown): boolean {
  return !Array.isArray(reply) && Number(reply) === 1;
}

export function acquired(mayRunAgain: boolean, fencingToken?: number): Acquired {
  if (fencingToken === undefined && !mayRunAgain) return ACQUIRED;
  return {
    acquired: true,
    ...(mayRunAgain && { mayRunAgain }),
    ...(fencingToken !== undefined && { fencingToken }),
  };
}

/** Returns a fencing token that a script drew. Beyond the safe integers, two tokens could be equal. */
export function tokenIn(reply: unknown): number {
  const token = Number(reply ?? NaN);
  if (Number.isSafeInteger(token) && token >= 0) return token;
  throw unexpected(reply);
}

/** @param pttl the key's time to live. -1 if the key never expires, or if the waiter is not the first */
export function notAcquired(holder: string | undefined, pttl: number): NotAcquired {
  return { acquired: false, holder, freeInMs: pttl === -1 ? undefined : Math.max(pttl, 0) };
}

export function renewReply(reply: unknown): Renewed | NotHeld {
  return isOne(reply) ? RENEWED : { renewed: false, holder: holderIn(reply) };
}

/** @param server warns if a PUBLISH was denied */
export function releaseReply(
  reply: unknown,
  mayHaveRunTwice: boolean,
  server: Pick<Server, "warnOfDeniedChannels">,
): ReleaseReply {
  if (Array.isArray(reply)) return notReleased(reply[0] as Found, mayHaveRunTwice);
  const outcome = Number(reply);
  if (outcome === 2) server.warnOfDeniedChannels();
  if (outcome !== 1 && outcome !== 2) throw unexpected(reply);
  return RELEASED;
}

/** Throws if the command may have run twice. Then the first one may have released the hold. */
export function notReleased(found: Found, mayHaveRunTwice: boolean): NotReleased {
  if (mayHaveRunTwice)
    throw new Error("the connection broke during the release, and Redis may have released the lock");
  return { released: false, holder: holderOf(found) };
}

/** Returns the value of the key. A key whose data is not text counts as held by somebody else. */
export function holderOf(found: Found): string | undefined {
  if (found === null) return undefined;
  if (!(found instanceof Error)) return found;
  if (isWrongType(found)) return NO_TEXT;
  throw translateError(found);
}

/** Returns the holder from the reply of a script that found the key in another state than expected: an array with its value. */
export function holderIn(reply: unknown): string | undefined {
  return holderOf(listOf(reply)[0] as Found);
}

/**
 * Reads the reply about the commands that scripts need.
 *
 * @throws {LockMisconfiguredError} if the user may not run one of them, or the server does not have it
 */
export function assertAllowed(outcome: unknown, command: unknown): void {
  if (Number(outcome) === 1) return;
  throw Number(outcome) === 2
    ? errorOf(INCOMPLETE, new Error(`unknown command in scripts: ${String(command)}`))
    : errorOf(DENIED, new Error(`NOPERM in scripts: ${String(command)}`));
}
