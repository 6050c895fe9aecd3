import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type {
  ReleaseReply,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreAdmin,
  StoreBatch,
  StoreListener,
  StoreQueue,
  Acquired,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";

/** A store under test, and what its tests need. */
export interface Subject {
  /** The store under test. If it opens a connection for wake-ups, that connection must already be open: see {@link untilListening}. */
  readonly store: Store;
  /** Lets this many milliseconds pass on the clock by which the store's keys expire. */
  elapse(ms: number): Promise<void>;
  /** Writes a value, as another version of the runtime or another program could. Without it, the tests that need it do nothing. */
  put?(key: string, value: string, ms: number): Promise<void>;
  /**
   * Whether several callers may hold a key together. Default `true`. Otherwise the store must reject such requests with
   * `LockMisconfiguredError`.
   */
  readonly canShare?: boolean;
}

/** Registers one test, as the function of a test runner does. */
export type RegisterTest = (title: string, run: () => Promise<void>) => void;

/** The groups of methods that a store may leave out. */
export const GROUPS = ["queue", "admin", "batch"] as const satisfies (keyof Store)[];
export type Group = (typeof GROUPS)[number];

/** Returns a function that registers tests for stores with these groups. For other stores, the tests do nothing. */
export function ifHas(test: RegisterTest, subject: () => Subject, ...groups: readonly Group[]): RegisterTest {
  return (title, run) =>
    test(title, async () => {
      const { store } = subject();
      if (groups.every((group) => store[group] !== undefined)) await run();
    });
}

export function queueOf({ queue }: Store): StoreQueue {
  assert.ok(queue !== undefined, "the store has a queue");
  return queue;
}

export function adminOf({ admin }: Store): StoreAdmin {
  assert.ok(admin !== undefined, "the store has commands for people");
  return admin;
}

export function batchOf({ batch }: Store): StoreBatch {
  assert.ok(batch !== undefined, "the store has commands for many keys");
  return batch;
}

/** A lock time that is longer than any test takes, even on a slow machine. */
export const LONG_MS = 600_000;
/** A lock time whose end a test waits for. The hold may expire before the next command of the test. */
export const SHORT_MS = 30;
/** A lock time whose end a test waits for, after a few more commands. If these are too slow on a busy machine, the test doubles it. */
export const BRIEF_MS = 1_500;
export const LONGEST_BRIEF_MS = 12_000;
/** The time that each call may take. */
export const TIMEOUT_MS = 30_000;

export const TAKEN: AcquireReply = { acquired: true };

export function newKey(): string {
  return `LOCK_contract_${randomUUID()}`;
}

/** Returns a new `requestId` or ticket. */
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

/** @param requestId a new one, unless the command is to run twice */
export function placing(
  key: string,
  ticket: string,
  wishes: Wishes = {},
  requestId = newId(),
): EnqueueRequest {
  return { ...request(key, requestId, wishes), ticket };
}

export function acquire(
  store: Store,
  key: string,
  requestId: string,
  wishes?: Wishes,
): Promise<AcquireReply> {
  return store.acquire(request(key, requestId, wishes), TIMEOUT_MS);
}

/** @param requestId a new one, unless the command is to run twice */
export function enqueue(
  store: Store,
  key: string,
  ticket: string,
  wishes?: Wishes,
  requestId?: string,
): Promise<AcquireReply> {
  return queueOf(store).enqueue(placing(key, ticket, wishes, requestId), TIMEOUT_MS);
}

/** Enqueues a waiter for a key that is held. */
export async function queued(store: Store, key: string, ticket: string): Promise<void> {
  assert.equal((await enqueue(store, key, ticket)).acquired, false, "the key is held by another caller");
}

/** Acquires the key for the waiter whose turn it is. Returns the `requestId` of the hold. */
export async function acquiredInTurn(
  store: Store,
  key: string,
  ticket: string,
  wishes?: Wishes,
): Promise<string> {
  const requestId = newId();
  const reply = await enqueue(store, key, ticket, wishes, requestId);
  assert.equal(reply.acquired, true, `expected ${ticket} to acquire the key, got ${JSON.stringify(reply)}`);
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

export function release(store: Store, key: string, requestId: string): Promise<ReleaseReply> {
  return store.release({ key, requestId }, TIMEOUT_MS);
}

/** Whether the key has that hold, alone or among others. The renewal that checks this extends nothing. */
export async function isHolding(store: Store, key: string, requestId: string): Promise<boolean> {
  const reply = await renew(store, key, requestId, 1);
  return reply !== undefined && "renewed" in reply && reply.renewed;
}

/** Releases a hold, and keeps the key closed to everybody for this long. */
export function close(
  store: Store,
  key: string,
  requestId: string,
  cooldownMs: number,
): Promise<ReleaseReply> {
  return store.release({ key, requestId, cooldownMs }, TIMEOUT_MS);
}

export async function peek(store: Store, key: string): Promise<string | Error | undefined> {
  return (await store.peek([key], TIMEOUT_MS))[0];
}

/** Returns how long the key keeps its value without a renewal, from the reply to a waiter. The waiter then leaves the queue. */
export async function timeLeft(store: Store, key: string): Promise<number> {
  const probe = newId();
  const leftMs = freeIn(await enqueue(store, key, probe));
  await queueOf(store).dequeue(key, probe, TIMEOUT_MS);
  assert.ok(leftMs !== undefined, "the probe is the first in the queue");
  return leftMs;
}

/** Asserts how long the key keeps its value without a renewal. Only a store with a queue reports it. */
export async function assertTimeLeft(
  store: Store,
  key: string,
  { above = 0, atMost = Infinity }: { readonly above?: number; readonly atMost?: number },
): Promise<void> {
  if (store.queue === undefined) return;
  const leftMs = await timeLeftBeyond(store, key, above);
  assert.ok(leftMs <= atMost, `${leftMs} ms are left`);
}

const MAX_PROBES = 10;

/**
 * Does the same after an extension. If the store has several servers, the one that replies may be the last to learn of the extension. So
 * this retries until more than `leastMs` are left.
 */
async function timeLeftBeyond(store: Store, key: string, leastMs: number): Promise<number> {
  let leftMs = await timeLeft(store, key);
  for (let probes = 1; probes < MAX_PROBES && leftMs <= leastMs; probes += 1)
    leftMs = await timeLeft(store, key);
  assert.ok(leftMs > leastMs, `${leftMs} ms are left`);
  return leftMs;
}

/** Returns when the key becomes free, from the reply to a waiter. */
export function freeIn(reply: AcquireReply): number | undefined {
  assert.ok(!reply.acquired, "the key is held by another caller");
  return reply.freeInMs;
}

/** Whether nobody holds the key, and nobody is in its queue. */
export async function isForgotten(store: Store, key: string): Promise<boolean> {
  const probe = newId();
  if (!(await acquire(store, key, probe)).acquired) return false;
  if (store.queue === undefined) return (await release(store, key, probe)).released;
  // The next caller acquires the key immediately only if nobody is in the queue.
  const next = placing(key, newId());
  const reply = await store.queue.releaseAndEnqueue({ key, requestId: probe }, next, TIMEOUT_MS);
  assert.ok(reply.released);
  const isAlone = typeof reply.next === "object";
  if (isAlone) await release(store, key, next.requestId);
  else await store.queue.dequeue(key, next.ticket, TIMEOUT_MS);
  return isAlone;
}

export function token(reply: Pick<Acquired, "fencingToken"> | RenewReply | AcquireReply | undefined): number {
  assert.ok(
    reply !== undefined && "fencingToken" in reply,
    `expected a fencing token in ${JSON.stringify(reply)}`,
  );
  assert.ok(reply.fencingToken !== undefined, "expected a fencing token");
  return reply.fencingToken;
}

/** Subscribes to what the store reports by itself. Returns a function that unsubscribes. */
export function subscribe(store: Store, listener: StoreListener): () => void {
  assert.ok(store.listen !== undefined, "the store has listen()");
  return store.listen(listener);
}

/** Listens to the wake-ups of one waiter. */
export function listen(
  store: Store,
  ticket: string,
): { readonly woken: Promise<void>; readonly isWoken: () => boolean; readonly unsubscribe: () => void } {
  let isWoken = false;
  let wake = (): void => {};
  const woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const unsubscribe = subscribe(store, {
    onWakeUp(one) {
      if (one !== ticket) return;
      isWoken = true;
      wake();
    },
    onReconnect() {},
    onWarning() {},
  });
  return { woken, isWoken: () => isWoken, unsubscribe };
}

/**
 * Resolves when the store receives wake-ups. Use it for a store that opens a connection for them when somebody first waits. Such a store
 * wakes all waiters once it is connected, since it may have missed wake-ups before.
 */
export async function untilListening(store: Store): Promise<void> {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const unsubscribe = subscribe(store, {
    onWakeUp(woken) {
      if (woken === undefined) open();
    },
    onReconnect() {},
    onWarning() {},
  });
  const [key, holder, probe] = [newKey(), newId(), newId()];
  await acquire(store, key, holder);
  await enqueue(store, key, probe);
  await opened;
  await queueOf(store).dequeue(key, probe, TIMEOUT_MS);
  await release(store, key, holder);
  unsubscribe();
}
