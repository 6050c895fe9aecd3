import { asError } from "../base/errors";
import { formatValue } from "../base/format-value";
import {
  FENCING_STRIDE,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type Inspection,
  type NotReleased,
  type ReleaseAndEnqueueReply,
  type ReleaseReply,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreBatch,
  type StoreState,
} from "./port";

// A store of the user may have been written without a type checker. So Lockweave checks each of its replies before it uses them. An invalid
// reply counts as no reply, and the command rejects. In a list of replies, only the request of the invalid one fails.

/** The stores of Lockweave. They are used as they are, because the compiler has checked their replies. */
const ours = new WeakSet<Store>();
/** The wrapper of each other store. */
const wrappers = new WeakMap<Store, Store>();

/** The methods whose replies decide whether a caller holds a lock. */
const REQUIRED = ["acquire", "renew", "release", "peek"] as const;

/** Marks a store of Lockweave. */
export function markAsOurs(store: Store): void {
  ours.add(store);
}

/**
 * Returns the store itself if it belongs to Lockweave. Otherwise returns a wrapper that checks its replies. Each store has only one wrapper,
 * because two configurations may contain the same store.
 */
export function withCheckedReplies(store: Store): Store {
  // A user may have replaced a method of our store, for example in a test.
  if (ours.has(store) && !REQUIRED.some((method) => Object.hasOwn(store, method))) return store;
  // At an earlier `configure()`, the store may have had other optional methods.
  const checked = Object.assign(wrappers.get(store) ?? {}, checkedStoreOf(store));
  wrappers.set(store, checked);
  return checked;
}

function checkedStoreOf(store: Store): Store {
  const { queue, admin, batch, transactions, confirmsReplicas = false, state, ready, listen, close } = store;
  const announced = admin?.announced;
  return {
    confirmsReplicas,
    acquire: async (request, timeoutMs) => checkAcquire(await store.acquire(request, timeoutMs), request),
    async renew(requests, timeoutMs) {
      const replies = checkList(await store.renew(requests, timeoutMs), requests.length);
      return requests.map((request, index) => orError(() => checkRenewal(replies[index], request)));
    },
    release: async (request, timeoutMs) => checkRelease(await store.release(request, timeoutMs)),
    peek: async (keys, timeoutMs) =>
      checkList(await store.peek(keys, timeoutMs), keys.length).map(checkValue),
    queue: queue && {
      enqueue: async (request, timeoutMs) => checkAcquire(await queue.enqueue(request, timeoutMs), request),
      dequeue: async (key, ticket, timeoutMs) => queue.dequeue(key, ticket, timeoutMs),
      releaseAndEnqueue: async (held, request, timeoutMs) =>
        checkReleaseAndEnqueue(await queue.releaseAndEnqueue(held, request, timeoutMs), request),
    },
    admin: admin && {
      inspect: async (key, timeoutMs) => checkInspection(await admin.inspect(key, timeoutMs)),
      revoke: async (request, timeoutMs) => checkRevocation(await admin.revoke(request, timeoutMs)),
      announce: async (request, timeoutMs) => admin.announce(request, timeoutMs),
      ...(announced && {
        announced: async (processNumber: string, timeoutMs: number) =>
          checkAnnouncement(await announced.call(admin, processNumber, timeoutMs)),
      }),
    },
    batch: batch && checkedBatch(batch),
    transactions: transactions && {
      guard: async (holds, run) =>
        checkList(await transactions.guard(holds, run), holds.length).map(checkGuard),
    },
    state: state && (() => checkState(state.call(store))),
    ready: ready && (async (key, timeoutMs) => ready.call(store, key, timeoutMs)),
    listen: listen && ((listener) => listen.call(store, listener)),
    close: close && (async () => close.call(store)),
  };
}

function checkedBatch(batch: StoreBatch): StoreBatch {
  const { splitsMany, enqueueMany } = batch;
  const checkEach = (
    requests: readonly AcquireRequest[],
    replies: unknown,
  ): readonly (AcquireReply | Error)[] => {
    const list = checkList(replies, requests.length);
    return requests.map((request, index) => orError(() => checkAcquire(list[index], request)));
  };
  return {
    ...(splitsMany !== undefined && { splitsMany }),
    acquireMany: async (requests, timeoutMs) =>
      checkEach(requests, await batch.acquireMany(requests, timeoutMs)),
    releaseMany: async (requests, timeoutMs) =>
      checkList(await batch.releaseMany(requests, timeoutMs), requests.length).map((reply) =>
        orError(() => checkRelease(reply)),
      ),
    enqueueMany:
      enqueueMany &&
      (async (requests, timeoutMs) =>
        checkEach(requests, await enqueueMany.call(batch, requests, timeoutMs))),
  };
}

/** Returns the checked reply, or the error of the store or of the check. */
function orError<Reply>(check: () => Reply): Reply | Error {
  try {
    return check();
  } catch (error) {
    return asError(error);
  }
}

/** The fields of a reply. Each may have any type. */
type Fields = Readonly<Record<string, unknown>>;

function checkAcquire(reply: unknown, { fencing, count }: AcquireRequest): AcquireReply {
  const fields = fieldsOf(reply);
  if (fields["acquired"] === true) return checkGrant(fields, fencing, count);
  if (fields["acquired"] !== false) throw invalid("`acquired`", fields["acquired"], "true or false");
  const { freeInMs } = fields;
  if (freeInMs !== undefined && !isTime(freeInMs)) throw invalid("`freeInMs`", freeInMs, "a time in ms");
  const holder = checkHolder(fields);
  if (fields["isLast"] === true) return { acquired: false, holder, freeInMs, isLast: true };
  return { acquired: false, holder, freeInMs };
}

function checkRelease(reply: unknown): ReleaseReply {
  const fields = fieldsOf(reply);
  if (fields["released"] === true) return RELEASED;
  return checkRefusedRelease(fields);
}

function checkReleaseAndEnqueue(
  reply: unknown,
  { fencing }: AcquireRequest,
): ReleaseAndEnqueueReply | NotReleased {
  const fields = fieldsOf(reply);
  if (fields["released"] !== true) return checkRefusedRelease(fields);
  const { next } = fields;
  if (next === undefined || next === "enqueued") return { released: true, next };
  const nextFields = fieldsOf(next);
  if (nextFields["acquired"] !== true) throw invalid("`next.acquired`", nextFields["acquired"], "true");
  return { released: true, next: checkGrant(nextFields, fencing) };
}

function checkRenewal(reply: unknown, { fencing }: RenewRequest): RenewReply {
  const fields = fieldsOf(reply);
  if (fields["renewed"] === true) {
    if (fencing) return { renewed: true, fencingToken: checkToken(fields) };
    return isSomebodyWaiting(fields) ? { renewed: true, hasWaiters: true } : RENEWED;
  }
  if (fields["renewed"] !== false) throw invalid("`renewed`", fields["renewed"], "true or false");
  return { renewed: false, holder: checkHolder(fields) };
}

/** Returns the value of one key, or an error. */
function checkValue(value: unknown): string | Error | undefined {
  if (value === undefined || typeof value === "string") return value;
  try {
    if (value instanceof Error) return value;
  } catch {
    // A revoked proxy.
  }
  return invalid("the value of a key", value, "text, or undefined");
}

function checkRevocation(reply: unknown): boolean {
  if (typeof reply === "boolean") return reply;
  throw invalid("whether it revoked a hold", reply, "true or false");
}

function checkGuard(reply: unknown): boolean {
  if (typeof reply === "boolean") return reply;
  throw invalid("whether a hold is guarded", reply, "true or false");
}

function checkState(state: unknown): StoreState {
  if (state === "starting" || state === "up" || state === "down") return state;
  throw invalid("its state", state, '"starting", "up", or "down"');
}

function checkInspection(reply: unknown): Inspection {
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

function checkAnnouncement(about: unknown): string | undefined {
  if (about === undefined || typeof about === "string") return about;
  throw invalid("an announcement", about, "text, or undefined if there is none");
}

/** Returns `count` replies, which are not checked yet. An error takes the place of each missing reply. */
function checkList(reply: unknown, count: number): readonly unknown[] {
  const replies = listIn(reply);
  if (replies.length === count) return replies;
  return Array.from({ length: count }, (_, index) => (index < replies.length ? replies[index] : NO_REPLY));
}

function listIn(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply;
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  throw invalid("a reply", reply, "a list");
}

const NO_REPLY = new Error("the store sent fewer replies than expected");

function fieldsOf(reply: unknown): Fields {
  if (reply === undefined || reply === null) throw new Error("the store sent no reply");
  if (reply instanceof Error) throw reply; // The store replied to one request of many with an error.
  if (typeof reply === "object") return reply as Fields;
  throw invalid("a reply", reply, "an object");
}

function checkGrant(fields: Fields, fencing: boolean, wanted?: number): Acquired {
  const { mayRunAgain } = fields;
  if (mayRunAgain !== undefined && typeof mayRunAgain !== "boolean") {
    throw invalid("`mayRunAgain`", mayRunAgain, "true or false");
  }
  const hasWaiters = isSomebodyWaiting(fields);
  if (!fencing && mayRunAgain !== true && wanted === undefined && !hasWaiters) return ACQUIRED;
  return {
    acquired: true,
    ...(wanted !== undefined && { count: checkCount(fields, wanted) }),
    ...(hasWaiters && { hasWaiters }),
    ...(mayRunAgain === true && { mayRunAgain }),
    ...(fencing && { fencingToken: checkToken(fields) }),
  };
}

/** Whether anybody is waiting. To be safe, any value except `false` and `undefined` counts as yes. */
function isSomebodyWaiting({ hasWaiters }: Fields): boolean {
  return hasWaiters !== undefined && hasWaiters !== false;
}

/** Returns the number of permits that the store granted: at least one, and not more than the caller wanted. */
function checkCount({ count }: Fields, wanted: number): number {
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 1 && count <= wanted) return count;
  throw invalid("`count`", count, `a whole number from 1 to ${wanted}`);
}

/**
 * Returns the fencing token. The holder counts up from it, so even the last token of the draw must be a safe integer: beyond those, two
 * tokens could be equal.
 */
function checkToken({ fencingToken: token }: Fields): number {
  const most = Number.MAX_SAFE_INTEGER - FENCING_STRIDE + 1;
  if (typeof token === "number" && Number.isSafeInteger(token) && token >= 0 && token <= most) return token;
  throw invalid("`fencingToken`", token, `a whole number from 0 to ${most}`);
}

function checkRefusedRelease(fields: Fields): NotReleased {
  if (fields["released"] !== false) throw invalid("`released`", fields["released"], "true or false");
  const { guardedBy } = fields;
  const refused = { released: false, holder: checkHolder(fields) } as const;
  return typeof guardedBy === "string" ? { ...refused, guardedBy } : refused;
}

function checkHolder({ holder }: Fields): string | undefined {
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
