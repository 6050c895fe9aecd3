import { formatValue } from "../../base/format-value";
import type { ReleaseReply, NotAcquired, RenewReply, Acquired } from "../port";
import { isWrongType, translateError } from "./errors";

// Converts the replies of scripts into the replies of the store.

/** A number in the reply of a script. It is text if the client has the option `stringNumbers`. */
export type Figure = number | string;

/** The value that a script found instead of the expected hold, in an array. `null` if the key is free. */
export type Found = readonly [string | null | Error];

// Replies without numbers are created once, and shared.
export const ACQUIRED: Acquired = { acquired: true };
export const RELEASED: ReleaseReply = { released: true };
const RENEWED: RenewReply = { renewed: true };
export const TOO_FEW = new Error("Redis sent fewer replies than expected");

/** The holder that is reported for a key whose data is not text. */
const NO_TEXT = "(other data than text)";

export function uncertainRelease(): Error {
  return new Error("the connection broke during the release, and Redis may have released the lock");
}

/** The error for a reply that no script of ours sends, such as "QUEUED" from a client in the middle of a transaction. */
export function unexpected(reply: unknown): Error {
  return new Error(`Redis sent an unexpected reply to a script: ${formatValue(reply)}`);
}

export function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** Returns a reply for each key, as SET would return it, from the reply of a script that acquires many keys. */
export function eachAcquired(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? Array.from({ length: count }, () => null) : listOf(reply);
}

/** Returns a reply for each key from the reply of a script for many keys, which is 1 if it succeeded for all keys. */
export function eachReply(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? Array.from({ length: count }, () => reply) : listOf(reply);
}

/** Whether one reply stands for all keys. */
function isOne(reply: unknown): boolean {
  return !Array.isArray(reply) && Number(reply) === 1;
}

/** @param pttl the key's time to live. -1 if the key never expires, or if the waiter is not the first */
export function notAcquired(holder: string | undefined, pttl: number): NotAcquired {
  return { acquired: false, holder, freeInMs: pttl === -1 ? undefined : Math.max(pttl, 0) };
}

export function renewReply(reply: unknown): RenewReply {
  if (reply instanceof Error) return translateError(reply);
  if (!Array.isArray(reply)) return Number(reply) === 1 ? RENEWED : unexpected(reply);
  const holder = holderOf((reply as unknown as Found)[0]);
  return holder instanceof Error ? holder : { renewed: false, holder };
}

/** Returns the value of the key. A key whose data is not text counts as held by somebody else. */
export function holderOf(found: Found[0]): string | Error | undefined {
  if (found === null) return undefined;
  if (!(found instanceof Error)) return found;
  return isWrongType(found) ? NO_TEXT : translateError(found);
}
