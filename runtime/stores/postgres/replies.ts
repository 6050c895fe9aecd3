import { formatValue } from "../../base/format-value";
import {
  FENCING_STRIDE,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type InspectedHold,
  type Inspection,
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type ReleaseReply,
  type RenewReply,
} from "../port";
import { UNLIMITED } from "../../base/limits";
import { BUSY_KEY } from "./errors";

// Converts the JSON replies of the functions in the schema into the replies of the store.

/** A part of a reply. Each field may have any type, until it is read. */
type Fields = Readonly<Record<string, unknown>>;

/** Receives what replies report besides their result. */
export interface ReplyObserver {
  /** Callers of the key use different numbers of permits. */
  onOtherLimit(key: string, limit: number, otherLimit: number): void;
}

export const TOO_FEW = new Error("PostgreSQL sent fewer replies than expected");

const BUSY = new Error(`${BUSY_KEY.what}. Fix: ${BUSY_KEY.fix}`);

/**
 * Returns the error of one request of a batch: its own, or the one for a key that the batch has skipped, because another transaction keeps its
 * advisory lock.
 */
export function readFailure(reply: unknown): Error | undefined {
  if (reply instanceof Error) return reply;
  return typeof reply === "object" && reply !== null && "busy" in reply ? BUSY : undefined;
}

const LARGEST_TOKEN = Number.MAX_SAFE_INTEGER - FENCING_STRIDE + 1;

const RELEASED: ReleaseReply = { released: true };

export function readAcquire(reply: unknown, request: AcquireRequest, observer: ReplyObserver): AcquireReply {
  const fields = fieldsOf(reply);
  if (isTrue(fields, "granted")) return readGrant(fields, request, observer);
  const refused = {
    acquired: false,
    holder: optionalText(fields, "holder"),
    freeInMs: optionalNumber(fields, "free_in_ms"),
  } as const;
  return isTrue(fields, "last") ? { ...refused, isLast: true } : refused;
}

function readGrant(fields: Fields, request: AcquireRequest, observer: ReplyObserver): Acquired {
  const { key, permits = 1, count } = request;
  const fencingToken = optionalToken(fields);
  const otherLimit = optionalNumber(fields, "other_limit");
  if (otherLimit !== undefined) observer.onOtherLimit(key, permits, otherLimit);
  return {
    acquired: true,
    ...(fencingToken !== undefined && { fencingToken }),
    ...(count !== undefined && { count: permits === UNLIMITED ? 1 : numberIn(fields, "count") }),
    ...(isTrue(fields, "waiters") && { hasWaiters: true }),
  };
}

export function readRenewal(reply: unknown): RenewReply {
  const fields = fieldsOf(reply);
  if (!isTrue(fields, "renewed")) return { renewed: false, holder: optionalText(fields, "holder") };
  const fencingToken = optionalToken(fields);
  return {
    renewed: true,
    ...(fencingToken !== undefined && { fencingToken }),
    ...(isTrue(fields, "waiters") && { hasWaiters: true }),
  };
}

/** Whether a hold has joined the renewal group in its request. */
export function hasJoined(reply: unknown): boolean {
  return typeof reply === "object" && reply !== null && "joined" in reply;
}

/** Returns whether a renewal group was renewed. */
export function readIsRenewed(reply: unknown): boolean {
  if (typeof reply === "boolean") return reply;
  throw unexpected(reply);
}

export function readRelease(reply: unknown): ReleaseReply {
  const fields = fieldsOf(reply);
  if (isTrue(fields, "released")) return RELEASED;
  const refused = { released: false, holder: optionalText(fields, "holder") } as const;
  const guardedBy = optionalText(fields, "guarded_by");
  return guardedBy === undefined ? refused : { ...refused, guardedBy };
}

export function readReleaseAndEnqueue(
  reply: unknown,
  request: AcquireRequest,
  observer: ReplyObserver,
): ReleaseAndEnqueueReply | NotReleased {
  const fields = fieldsOf(reply);
  if (!isTrue(fields, "released")) return { released: false, holder: optionalText(fields, "holder") };
  const { next } = fields;
  if (next === null) return { released: true, next: "enqueued" };
  return { released: true, next: readGrant(fieldsOf(next), request, observer) };
}

/** Returns the value of a key, or `undefined` for a free key. */
export function readValue(reply: unknown): string | undefined {
  if (reply === null) return undefined;
  if (typeof reply === "string") return reply;
  throw unexpected(reply);
}

export function readInspection(reply: unknown): Inspection {
  const fields = fieldsOf(reply);
  const { holds } = fields;
  if (!Array.isArray(holds)) throw unexpected(reply);
  return { holds: holds.map(readInspectedHold), waiting: numberIn(fields, "waiting") };
}

function readInspectedHold(reply: unknown): InspectedHold {
  const fields = fieldsOf(reply);
  const value = optionalText(fields, "value");
  if (value === undefined) throw unexpected(reply);
  const permits = optionalNumber(fields, "permits");
  const leftMs = numberIn(fields, "left_ms");
  return permits === undefined ? { value, leftMs } : { value, leftMs, permits };
}

function fieldsOf(reply: unknown): Fields {
  if (typeof reply === "object" && reply !== null) return reply as Fields;
  throw unexpected(reply);
}

function isTrue(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value === "boolean") return value;
  throw unexpected(fields);
}

function optionalText(fields: Fields, name: string): string | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined || typeof value === "string") return value;
  throw unexpected(fields);
}

function optionalNumber(fields: Fields, name: string): number | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined || typeof value === "number") return value;
  throw unexpected(fields);
}

/**
 * Returns the fencing token. It arrives as text, because JSON.parse() would round a large number. The holder counts up from it, so even the last token
 * of the draw must be a safe integer.
 */
function optionalToken(fields: Fields): number | undefined {
  const text = optionalText(fields, "token");
  if (text === undefined) return undefined;
  const token = Number(text);
  if (token <= LARGEST_TOKEN) return token;
  throw new Error(
    `the fencing token ${text} is too large for a number in JavaScript. Fix: correct the clock of PostgreSQL, and delete the row of the key in the table fence`,
  );
}

function numberIn(fields: Fields, name: string): number {
  const value = optionalNumber(fields, name);
  if (value === undefined) throw unexpected(fields);
  return value;
}

function unexpected(reply: unknown): Error {
  return new Error(`PostgreSQL sent an unexpected reply: ${formatValue(reply)}`);
}
