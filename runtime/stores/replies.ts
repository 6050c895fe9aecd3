import { formatValue } from "../base/format-value";
import {
  FENCING_STRIDE,
  type ReleaseReply,
  type Inspection,
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type RenewReply,
  type Acquired,
  type AcquireReply,
} from "./port";

// Checks of the replies of a store. The author of the store may not have checked its types, so each reply is checked here before anybody
// acts on it. An invalid reply counts as no reply: each function throws, unless its comment says otherwise.

/** The fields of a reply. Each may have any type. */
type Fields = Readonly<Record<string, unknown>>;

/** @param wanted the number of permits in the request, if it has one */
export function acquireReply(reply: unknown, fencing: boolean, wanted?: number): AcquireReply {
  const fields = fieldsOf(reply);
  if (fields["acquired"] === true) return acquired(fields, fencing, wanted);
  if (fields["acquired"] !== false) throw invalid("`acquired`", fields["acquired"], "true or false");
  const { freeInMs } = fields;
  if (freeInMs !== undefined && !isTime(freeInMs)) throw invalid("`freeInMs`", freeInMs, "a time in ms");
  const holder = holderIn(fields);
  if (fields["isLast"] === true) return { acquired: false, holder, freeInMs, isLast: true };
  return { acquired: false, holder, freeInMs };
}

export function releaseReply(reply: unknown): ReleaseReply {
  const fields = fieldsOf(reply);
  if (fields["released"] === true) return RELEASED;
  return notReleased(fields);
}

export function releaseAndEnqueueReply(
  reply: unknown,
  fencing: boolean,
): ReleaseAndEnqueueReply | NotReleased {
  const fields = fieldsOf(reply);
  if (fields["released"] !== true) return notReleased(fields);
  const { next } = fields;
  if (next === undefined || next === "enqueued") return { released: true, next };
  const nextFields = fieldsOf(next);
  if (nextFields["acquired"] !== true) throw invalid("`next.acquired`", nextFields["acquired"], "true");
  return { released: true, next: acquired(nextFields, fencing) };
}

/** Returns the reply to one of several renewals. An error from the store counts as a reply. */
export function renewReply(reply: unknown, fencing: boolean): RenewReply {
  if (reply instanceof Error) return reply;
  const fields = fieldsOf(reply);
  if (fields["renewed"] === true) {
    if (fencing) return { renewed: true, fencingToken: tokenIn(fields) };
    return isSomebodyWaiting(fields) ? { renewed: true, somebodyWaits: true } : RENEWED;
  }
  if (fields["renewed"] !== false) throw invalid("`renewed`", fields["renewed"], "true or false");
  return { renewed: false, holder: holderIn(fields) };
}

/** Returns the value of one key. Never throws: an invalid value concerns only its own key, so it becomes an error in the list. */
export function peekReply(value: unknown): string | Error | undefined {
  if (value === undefined || typeof value === "string") return value;
  try {
    if (value instanceof Error) return value;
  } catch {
    // A revoked proxy.
  }
  return invalid("the value of a key", value, "text, or undefined");
}

export function revokeReply(reply: unknown): boolean {
  if (typeof reply === "boolean") return reply;
  throw invalid("whether it revoked a hold", reply, "true or false");
}

export function inspection(reply: unknown): Inspection {
  const { holds, waiting } = fieldsOf(reply);
  if (waiting !== undefined && !Number.isSafeInteger(waiting))
    throw invalid("`waiting`", waiting, "a number, or undefined if unknown");
  const all = listIn(holds).map((hold) => {
    const { value, leftMs, permits } = fieldsOf(hold);
    if (typeof value !== "string") throw invalid("`value`", value, "text");
    if (leftMs !== undefined && (typeof leftMs !== "number" || Number.isNaN(leftMs)))
      throw invalid("`leftMs`", leftMs, "a time in ms, or undefined if unknown");
    return Number.isSafeInteger(permits) ? { value, leftMs, permits: permits as number } : { value, leftMs };
  });
  return { holds: all, waiting: waiting as number | undefined };
}

/** Returns `count` replies, which are not checked yet. An error takes the place of each missing reply. */
export function repliesIn(reply: unknown, count: number): readonly unknown[] {
  const replies = listIn(reply);
  if (replies.length === count) return replies;
  return Array.from({ length: count }, (_, index) => (index < replies.length ? replies[index] : TOO_FEW));
}

function listIn(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  throw invalid("a reply", reply, "a list");
}

const TOO_FEW = new Error("the store sent fewer replies than expected");

function fieldsOf(reply: unknown): Fields {
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  if (typeof reply === "object") return reply as Fields;
  throw invalid("a reply", reply, "an object");
}

function acquired(fields: Fields, fencing: boolean, wanted?: number): Acquired {
  const { mayComeAgain } = fields;
  if (mayComeAgain !== undefined && typeof mayComeAgain !== "boolean") {
    throw invalid("`mayComeAgain`", mayComeAgain, "true or false");
  }
  const somebodyWaits = isSomebodyWaiting(fields);
  if (!fencing && mayComeAgain !== true && wanted === undefined && !somebodyWaits) return ACQUIRED;
  return {
    acquired: true,
    ...(wanted !== undefined && { count: countIn(fields, wanted) }),
    ...(somebodyWaits && { somebodyWaits }),
    ...(mayComeAgain === true && { mayComeAgain }),
    ...(fencing && { fencingToken: tokenIn(fields) }),
  };
}

/** Whether anybody is waiting. Any value except `false` and `undefined` counts as yes, which is the safe reading. */
function isSomebodyWaiting({ somebodyWaits }: Fields): boolean {
  return somebodyWaits !== undefined && somebodyWaits !== false;
}

/** Returns the number of permits that the store granted: at least one, and not more than the caller wanted. */
function countIn({ count }: Fields, wanted: number): number {
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 1 && count <= wanted) return count;
  throw invalid("`count`", count, `a whole number from 1 to ${wanted}`);
}

/**
 * Returns the fencing token. The holder counts up from it, so even the last token of the draw must be a safe integer: beyond those, two
 * tokens could be equal.
 */
function tokenIn({ fencingToken: token }: Fields): number {
  const most = Number.MAX_SAFE_INTEGER - FENCING_STRIDE + 1;
  if (typeof token === "number" && Number.isSafeInteger(token) && token >= 0 && token <= most) return token;
  throw invalid("`fencingToken`", token, `a whole number from 0 to ${most}`);
}

function notReleased(fields: Fields): NotReleased {
  if (fields["released"] !== false) throw invalid("`released`", fields["released"], "true or false");
  return { released: false, holder: holderIn(fields) };
}

function holderIn({ holder }: Fields): string | undefined {
  if (holder === undefined || typeof holder === "string") return holder;
  throw invalid("`holder`", holder, "text, or undefined if nobody holds the key");
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

function invalid(what: string, got: unknown, expected: string): Error {
  return new Error(`the store sent ${formatValue(got)} for ${what}, expected ${expected}`);
}

const ACQUIRED: Acquired = { acquired: true };
const RELEASED: ReleaseReply = { released: true };
const RENEWED: RenewReply = { renewed: true };
