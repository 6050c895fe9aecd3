import { formatValue } from "../format-value";
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

// What a store may reply. Somebody else may have written the store, or its types may not have been checked. So every reply
// is read here before anybody acts on it, and a bad one is as good as none. Each function throws on a bad reply.

/** A reply by its fields, each of which may be anything. */
type Fields = Readonly<Record<string, unknown>>;

/** @param wanted how many permits were asked for, if it was said */
export function acquireReply(reply: unknown, fencing: boolean, wanted?: number): AcquireReply {
  const fields = fieldsOf(reply);
  if (fields["acquired"] === true) return taken(fields, fencing, wanted);
  if (fields["acquired"] !== false) throw bad("`acquired`", fields["acquired"], "true or false");
  const { freeInMs } = fields;
  if (freeInMs !== undefined && !isTime(freeInMs)) throw bad("`freeInMs`", freeInMs, "a time in ms");
  const holder = holderIn(fields);
  if (fields["isLast"] === true) return { acquired: false, holder, freeInMs, isLast: true };
  return { acquired: false, holder, freeInMs };
}

export function releaseReply(reply: unknown): ReleaseReply {
  const fields = fieldsOf(reply);
  if (fields["released"] === true) return DROPPED;
  return notDropped(fields);
}

export function releaseAndEnqueueReply(
  reply: unknown,
  fencing: boolean,
): ReleaseAndEnqueueReply | NotReleased {
  const fields = fieldsOf(reply);
  if (fields["released"] !== true) return notDropped(fields);
  const { next } = fields;
  if (next === undefined || next === "enqueued") return { released: true, next };
  const nextFields = fieldsOf(next);
  if (nextFields["acquired"] !== true) throw bad("`next.acquired`", nextFields["acquired"], "true");
  return { released: true, next: taken(nextFields, fencing) };
}

/** Of one among many: an error of the store is a reply, too. */
export function renewReply(reply: unknown, fencing: boolean): RenewReply {
  if (reply instanceof Error) return reply;
  const fields = fieldsOf(reply);
  if (fields["renewed"] === true) {
    if (fencing) return { renewed: true, fencingToken: tokenIn(fields) };
    return doesSomebodyWait(fields) ? { renewed: true, somebodyWaits: true } : RENEWED;
  }
  if (fields["renewed"] !== false) throw bad("`renewed`", fields["renewed"], "true or false");
  return { renewed: false, holder: holderIn(fields) };
}

/** What one key holds. It never throws: one bad value says nothing about other keys. */
export function peekReply(value: unknown): string | Error | undefined {
  if (value === undefined || typeof value === "string") return value;
  try {
    if (value instanceof Error) return value;
  } catch {
    // A proxy that lets nobody look.
  }
  return bad("the value of a key", value, "text, or undefined");
}

export function revokeReply(reply: unknown): boolean {
  if (typeof reply === "boolean") return reply;
  throw bad("whether it revoked a hold", reply, "true or false");
}

export function inspection(reply: unknown): Inspection {
  const { holds, waiting } = fieldsOf(reply);
  if (!Number.isSafeInteger(waiting)) throw bad("`waiting`", waiting, "a number");
  const all = listIn(holds).map((hold) => {
    const { value, leftMs, permits } = fieldsOf(hold);
    if (typeof value !== "string") throw bad("`value`", value, "text");
    if (typeof leftMs !== "number" || Number.isNaN(leftMs)) throw bad("`leftMs`", leftMs, "a time in ms");
    return Number.isSafeInteger(permits) ? { value, leftMs, permits: permits as number } : { value, leftMs };
  });
  return { holds: all, waiting: waiting as number };
}

/** The replies to so many, each of which is to be read by itself. An error stands for one that is missing. */
export function repliesIn(reply: unknown, count: number): readonly unknown[] {
  const replies = listIn(reply);
  if (replies.length === count) return replies;
  return Array.from({ length: count }, (_, index) => (index < replies.length ? replies[index] : TOO_FEW));
}

function listIn(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  throw bad("a reply", reply, "a list");
}

const TOO_FEW = new Error("the store sent fewer replies than expected");

function fieldsOf(reply: unknown): Fields {
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  if (typeof reply === "object") return reply as Fields;
  throw bad("a reply", reply, "an object");
}

function taken(fields: Fields, fencing: boolean, wanted?: number): Acquired {
  const { mayComeAgain } = fields;
  if (mayComeAgain !== undefined && typeof mayComeAgain !== "boolean") {
    throw bad("`mayComeAgain`", mayComeAgain, "true or false");
  }
  const somebodyWaits = doesSomebodyWait(fields);
  if (!fencing && mayComeAgain !== true && wanted === undefined && !somebodyWaits) return TAKEN;
  return {
    acquired: true,
    ...(wanted !== undefined && { count: countIn(fields, wanted) }),
    ...(somebodyWaits && { somebodyWaits }),
    ...(mayComeAgain === true && { mayComeAgain }),
    ...(fencing && { fencingToken: tokenIn(fields) }),
  };
}

/** A store that cannot tell is believed to say so. */
function doesSomebodyWait({ somebodyWaits }: Fields): boolean {
  return somebodyWaits !== undefined && somebodyWaits !== false;
}

/** Nobody has more permits than were asked for. */
function countIn({ count }: Fields, wanted: number): number {
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 1 && count <= wanted) return count;
  throw bad("`count`", count, `a whole number from 1 to ${wanted}`);
}

/** Also of the last token that its holder counts on to, no two may have one number. */
function tokenIn({ fencingToken: token }: Fields): number {
  const most = Number.MAX_SAFE_INTEGER - FENCING_STRIDE + 1;
  if (typeof token === "number" && Number.isSafeInteger(token) && token >= 0 && token <= most) return token;
  throw bad("`fencingToken`", token, `a whole number from 0 to ${most}`);
}

function notDropped(fields: Fields): NotReleased {
  if (fields["released"] !== false) throw bad("`released`", fields["released"], "true or false");
  return { released: false, holder: holderIn(fields) };
}

function holderIn({ holder }: Fields): string | undefined {
  if (holder === undefined || typeof holder === "string") return holder;
  throw bad("`holder`", holder, "text, or undefined where nobody holds the key");
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

function bad(what: string, got: unknown, expected: string): Error {
  return new Error(`the store sent ${formatValue(got)} for ${what}, expected ${expected}`);
}

const TAKEN: Acquired = { acquired: true };
const DROPPED: ReleaseReply = { released: true };
const RENEWED: RenewReply = { renewed: true };
