import { formatValue } from "../../format-value";
import type { ReleaseReply, NotAcquired, RenewReply, Acquired } from "../port";
import { isWrongType, translateError } from "./errors";

// What the scripts' replies mean to those who asked.

/** A number in a script's reply: as text, where the client was told so by its `stringNumbers`. */
export type Figure = number | string;

/** What a script found instead of what it was to change: in an array, nothing where the key is free. */
export type Found = readonly [string | null | Error];

// The replies without figures are made once.
export const ACQUIRED: Acquired = { acquired: true };
export const RELEASED: ReleaseReply = { released: true };
const RENEWED: RenewReply = { renewed: true };
export const TOO_FEW = new Error("Redis sent fewer replies than expected");

/** Stands for what a key holds that is no text. */
const NO_TEXT = "(other data than text)";

export function doubtful(): Error {
  return new Error("the connection broke during the release, and Redis may have released the lock");
}

/** What no script of ours replies: such as "QUEUED", of a client that is in the middle of a transaction. */
export function unexpected(reply: unknown): Error {
  return new Error(`Redis sent an unexpected reply to a script: ${formatValue(reply)}`);
}

export function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** Of a script that takes many keys: for each what SET would say. */
export function eachAcquired(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? Array.from({ length: count }, () => null) : listOf(reply);
}

/** Of a script that does something with many keys, which says 1 where it was done. */
export function eachReply(reply: unknown, count: number): readonly unknown[] {
  return isOne(reply) ? Array.from({ length: count }, () => reply) : listOf(reply);
}

/** For all of them. */
function isOne(reply: unknown): boolean {
  return !Array.isArray(reply) && Number(reply) === 1;
}

/** @param pttl -1 for a key that never expires, and for those who are not next */
export function notAcquired(holder: string | undefined, pttl: number): NotAcquired {
  return { acquired: false, holder, freeInMs: pttl === -1 ? undefined : Math.max(pttl, 0) };
}

export function renewReply(reply: unknown): RenewReply {
  if (reply instanceof Error) return translateError(reply);
  if (!Array.isArray(reply)) return Number(reply) === 1 ? RENEWED : unexpected(reply);
  const holder = holderOf((reply as unknown as Found)[0]);
  return holder instanceof Error ? holder : { renewed: false, holder };
}

/** A key that holds other data than text is somebody's, whoever that is. */
export function holderOf(found: Found[0]): string | Error | undefined {
  if (found === null) return undefined;
  if (!(found instanceof Error)) return found;
  return isWrongType(found) ? NO_TEXT : translateError(found);
}
