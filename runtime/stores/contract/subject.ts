import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type {
  ReleaseReply,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  Acquired,
  AcquireReply,
  AcquireRequest,
} from "../port";

/** A store that is put to the test, and what the test can do besides asking it. */
export interface Subject {
  /** Its hints must be heard already, where a connection has to be opened for them: see {@link hearing}. */
  readonly store: Store;
  /** Lets so many milliseconds go by on the clock by which the store's keys expire. */
  elapse(ms: number): Promise<void>;
  /** Writes a value as another version of the runtime, or a foreigner, could: without it those tests are left out. */
  put?(key: string, value: string, ms: number): Promise<void>;
  /** Whether several may hold a key together; by default they may. Where not, the store is to refuse it for good. */
  readonly canShare?: boolean;
}

/** Registers one test, as a test runner's own function does. */
export type RegisterTest = (title: string, run: () => Promise<void>) => void;

/** A lock time that no test outlives, however slow the machine is. */
export const LONG_MS = 600_000;
/** A lock time whose end a test waits for. */
export const SHORT_MS = 30;
/** How long each call may take. */
export const TIMEOUT_MS = 30_000;

export const TAKEN: AcquireReply = { acquired: true };

export function newKey(): string {
  return `LOCK_contract_${randomUUID()}`;
}

/** For a `requestId`, or a place. */
export function newId(): string {
  return randomUUID().replaceAll("-", "");
}

export interface Wishes {
  readonly lockTimeMs?: number;
  readonly fencing?: boolean;
  readonly permits?: number;
  readonly count?: number;
}

export function request(key: string, requestId: string, wishes: Wishes = {}): AcquireRequest {
  const { lockTimeMs = LONG_MS, fencing = false, ...sharing } = wishes;
  return { key, requestId, lockTimeMs, fencing, ...sharing };
}

/** @param requestId a new one, unless the command is to be carried out twice */
export function placing(
  key: string,
  atPlace: string,
  wishes: Wishes = {},
  requestId = newId(),
): EnqueueRequest {
  return { ...request(key, requestId, wishes), ticket: atPlace };
}

export function take(store: Store, key: string, requestId: string, wishes?: Wishes): Promise<AcquireReply> {
  return store.acquire(request(key, requestId, wishes), TIMEOUT_MS);
}

/** @param requestId a new one, unless the command is to be carried out twice */
export function place(
  store: Store,
  key: string,
  atPlace: string,
  wishes?: Wishes,
  requestId?: string,
): Promise<AcquireReply> {
  return store.enqueue(placing(key, atPlace, wishes, requestId), TIMEOUT_MS);
}

/** Puts one who waits in the queue of a key that is taken. */
export async function queued(store: Store, key: string, atPlace: string): Promise<void> {
  assert.equal((await place(store, key, atPlace)).acquired, false, "a key that is held by another");
}

/** One who waits takes the key whose turn it is to have it, and tells with which `requestId`. */
export async function takenInTurn(
  store: Store,
  key: string,
  atPlace: string,
  wishes?: Wishes,
): Promise<string> {
  const requestId = newId();
  const reply = await place(store, key, atPlace, wishes, requestId);
  assert.equal(reply.acquired, true, `the turn of ${atPlace}, and not ${JSON.stringify(reply)}`);
  return requestId;
}

export async function renew(
  store: Store,
  key: string,
  requestId: string,
  lockTimeMs: number,
): Promise<RenewReply | undefined> {
  return (await store.renew([renewal(key, requestId, lockTimeMs)], TIMEOUT_MS))[0];
}

export function renewal(key: string, requestId: string, lockTimeMs = LONG_MS): RenewRequest {
  return { key, requestId, lockTimeMs, fencing: false };
}

export function drop(store: Store, key: string, requestId: string): Promise<ReleaseReply> {
  return store.release({ key, requestId }, TIMEOUT_MS);
}

/** Whether the key has that hold, alone or among others. The renewal that asks prolongs nothing. */
export async function isHolding(store: Store, key: string, requestId: string): Promise<boolean> {
  const reply = await renew(store, key, requestId, 1);
  return reply !== undefined && "renewed" in reply && reply.renewed;
}

/** Ends a hold so that nobody may have the key for so long. */
export function close(
  store: Store,
  key: string,
  requestId: string,
  cooldownMs: number,
): Promise<ReleaseReply> {
  return store.release({ key, requestId, cooldownMs }, TIMEOUT_MS);
}

export async function look(store: Store, key: string): Promise<string | Error | undefined> {
  return (await store.peek([key], TIMEOUT_MS))[0];
}

/** How long the key stays as it is, as one who waits for it is told; at the end it waits no more. */
export async function timeLeft(store: Store, key: string): Promise<number> {
  const probe = newId();
  const leftMs = freeIn(await place(store, key, probe));
  await store.dequeue(key, probe, TIMEOUT_MS);
  assert.ok(leftMs !== undefined, "a place at the head of the queue");
  return leftMs;
}

const MOST_LOOKS = 10;

/** The same, of one that was prolonged: of several servers, the one that is asked may be the last to hear of that. */
export async function timeLeftBeyond(store: Store, key: string, leastMs: number): Promise<number> {
  let leftMs = await timeLeft(store, key);
  for (let looks = 1; looks < MOST_LOOKS && leftMs <= leastMs; looks += 1)
    leftMs = await timeLeft(store, key);
  assert.ok(leftMs > leastMs, `${leftMs} ms are left`);
  return leftMs;
}

/** When the key becomes free for the one who was told so. */
export function freeIn(reply: AcquireReply): number | undefined {
  assert.ok(!reply.acquired, "the key is held by another");
  return reply.freeInMs;
}

/** Whether nobody holds the key, and nobody has a place in its queue. */
export async function isForgotten(store: Store, key: string): Promise<boolean> {
  const probe = newId();
  if (!(await take(store, key, probe)).acquired) return false;
  // Only where nobody was before it does the next take the key at once.
  const next = placing(key, newId());
  const reply = await store.releaseAndEnqueue({ key, requestId: probe }, next, TIMEOUT_MS);
  assert.ok(reply.released);
  const isAlone = typeof reply.next === "object";
  if (isAlone) await drop(store, key, next.requestId);
  else await store.dequeue(key, next.ticket, TIMEOUT_MS);
  return isAlone;
}

export function token(reply: Pick<Acquired, "fencingToken"> | RenewReply | AcquireReply | undefined): number {
  assert.ok(reply !== undefined && "fencingToken" in reply, `a fencing token in ${JSON.stringify(reply)}`);
  assert.ok(reply.fencingToken !== undefined, "a fencing token");
  return reply.fencingToken;
}

/** An ear for the hints to one place. */
export function listen(
  store: Store,
  atPlace: string,
): { readonly heard: Promise<void>; readonly hasHeard: () => boolean; readonly deafen: () => void } {
  let hasHeard = false;
  let tell = (): void => {};
  const heard = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const deafen = store.listen({
    onWakeUp(hinted) {
      if (hinted !== atPlace) return;
      hasHeard = true;
      tell();
    },
    onReconnect() {},
    onWarning() {},
  });
  return { heard, hasHeard: () => hasHeard, deafen };
}

/**
 * Resolves when the store hears its hints, of one that opens a connection for them when somebody first waits: what it
 * missed until then it tells to everybody.
 */
export async function hearing(store: Store): Promise<void> {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const deafen = store.listen({
    onWakeUp(hinted) {
      if (hinted === undefined) open();
    },
    onReconnect() {},
    onWarning() {},
  });
  const [key, holder, probe] = [newKey(), newId(), newId()];
  await take(store, key, holder);
  await place(store, key, probe);
  await opened;
  await store.dequeue(key, probe, TIMEOUT_MS);
  await drop(store, key, holder);
  deafen();
}
