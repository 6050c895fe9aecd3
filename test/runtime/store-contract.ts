import { randomUUID } from "node:crypto";
import type { ExecutionContext, TestFn } from "ava";
import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  PLACE_TIME_MS,
  type AcquireReply,
  type AcquireRequest,
  type Granted,
  type ReleaseReply,
  type RenewReply,
  type Store,
} from "../../runtime/store";
import { deferred } from "../support/deferred";

/** A store that hears its hints already, and the time by which its keys expire. */
export interface Subject {
  readonly store: Store;
  elapse(ms: number): Promise<void>;
}

/** A lock time that no test outlives, however slow the machine is. */
const LONG_MS = 600_000;
/** A lock time whose end a test waits for. */
const SHORT_MS = 30;

/** What every store promises: the same tests over each. */
export function storeContract(testOf: TestFn, subject: () => Subject, prefix = ""): void {
  const test = (title: string, implementation: (t: ExecutionContext) => Promise<void>): void =>
    testOf(prefix + title, implementation);

  test("a free key is granted, and the grant is fresh", async (t) => {
    const { store } = subject();
    t.deepEqual(await acquire(store, newKey(), newId()), { granted: true, fresh: true });
  });

  test("a held key is refused to another request, which learns when it becomes free if it waits", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, newId());
    t.false((await acquire(store, key, requestId)).granted);
    const freeInMs = freeIn(await wait(store, key, requestId));
    t.true(freeInMs !== undefined && freeInMs > 0 && freeInMs <= LONG_MS, String(freeInMs));
  });

  test("the same request is granted again, and told that it is not fresh", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    t.deepEqual(await acquire(store, key, requestId), { granted: true, fresh: false });
  });

  test("asking again does not prolong the lock", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: LONG_MS });
    await acquire(store, key, requestId, { lockTimeMs: 2 * LONG_MS });
    const freeInMs = freeIn(await wait(store, key, newId()));
    t.true(freeInMs !== undefined && freeInMs <= LONG_MS, String(freeInMs));
  });

  test("of many requests at once, one is granted", async (t) => {
    const { store } = subject();
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 50 }, () => acquire(store, key, newId())));
    t.is(replies.filter((reply) => reply.granted).length, 1);
  });

  test("a lock that is not released becomes free when its time is over", async (t) => {
    const { store, elapse } = subject();
    const key = newKey();
    await acquire(store, key, newId(), { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    t.deepEqual(await acquire(store, key, newId()), { granted: true, fresh: true });
  });

  test("a renewal gives the holder its whole lock time again", async (t) => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: LONG_MS });
    t.is(await renew(store, key, requestId, SHORT_MS), "renewed");
    await elapse(SHORT_MS);
    t.true((await acquire(store, key, requestId)).granted);
    t.is(await renew(store, key, requestId, 2 * LONG_MS), "renewed");
    const freeInMs = freeIn(await wait(store, key, newId()));
    t.true(freeInMs !== undefined && freeInMs > LONG_MS, String(freeInMs));
  });

  test("a renewal after the end tells that the lock expired, and does not bring it back", async (t) => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    t.is(await renew(store, key, requestId, LONG_MS), "expired");
    t.true((await acquire(store, key, newId())).granted);
  });

  test("a renewal of a lock that another holds now tells that it was stolen, and changes nothing", async (t) => {
    const { store, elapse } = subject();
    const [key, late, next] = [newKey(), newId(), newId()];
    await acquire(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    await acquire(store, key, next);
    t.is(await renew(store, key, late, LONG_MS), "stolen");
    t.is(await renew(store, key, next, LONG_MS), "renewed");
  });

  test("a released key is free at once", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    t.is(await release(store, key, requestId), "released");
    t.deepEqual(await acquire(store, key, newId()), { granted: true, fresh: true });
  });

  test("a release after the end tells that the lock expired", async (t) => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    t.is(await release(store, key, requestId), "expired");
  });

  test("a release by one who holds nothing leaves the holder alone", async (t) => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder);
    t.is(await release(store, key, newId()), "stolen");
    t.is(await release(store, key, holder), "released");
    t.is(await release(store, key, holder), "expired");
  });

  // ---- waiting ----------------------------------------------------------------------------------------

  test("one who waits for a free key is granted it", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    t.deepEqual(await wait(store, key, requestId), { granted: true, fresh: true });
    t.false((await acquire(store, key, newId())).granted);
    t.is(await release(store, key, requestId), "released");
    t.true(await isForgotten(store, key));
  });

  test("those who wait have the lock in the order in which they came, and nobody else gets between", async (t) => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    const waiting = Array.from({ length: 5 }, newId);
    await acquire(store, key, holder);
    for (const requestId of waiting) t.false((await wait(store, key, requestId)).granted);
    for (const requestId of waiting.toReversed()) t.false((await wait(store, key, requestId)).granted);
    let last = holder;
    for (const [index, next] of waiting.entries()) {
      t.is(await release(store, key, last), "released");
      t.false((await acquire(store, key, newId())).granted, "a passer-by does not get between");
      for (const later of waiting.slice(index + 1)) t.false((await wait(store, key, later)).granted);
      t.deepEqual(await wait(store, key, next), { granted: true, fresh: true });
      last = next;
    }
    t.is(await release(store, key, last), "released");
    t.true(await isForgotten(store, key));
  });

  test("only the first of those who wait is told when the key becomes free", async (t) => {
    const { store } = subject();
    const [key, first, second] = [newKey(), newId(), newId()];
    await acquire(store, key, newId());
    t.true((freeIn(await wait(store, key, first)) ?? 0) > 0);
    t.is(freeIn(await wait(store, key, second)), undefined, "it is free for the other, then");
    await store.leave(key, first);
    t.true((freeIn(await wait(store, key, second)) ?? 0) > 0);
  });

  test("a release gives the lock to the first who waits, and hints to it alone", async (t) => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const ear = listen(store, first);
    const otherEar = listen(store, second);
    await acquire(store, key, holder);
    await wait(store, key, first);
    await wait(store, key, second);
    t.false(ear.hasHeard());
    t.is(await release(store, key, holder), "released");
    await ear.heard;
    t.false((await wait(store, key, second)).granted);
    t.true((await wait(store, key, first)).granted);
    t.false(otherEar.hasHeard());
    ear.deafen();
    otherEar.deafen();
  });

  test("who stopped to listen hears nothing more, and the others still do", async (t) => {
    const { store } = subject();
    const [key, holder, waiter] = [newKey(), newId(), newId()];
    const first = listen(store, waiter);
    const second = listen(store, waiter);
    first.deafen();
    const third = listen(store, waiter);
    await acquire(store, key, holder);
    await wait(store, key, waiter);
    await store.release(key, holder);
    await Promise.all([second.heard, third.heard]);
    t.false(first.hasHeard());
    second.deafen();
    third.deafen();
  });

  test("what the queue gave is kept for a short time only, and has the whole lock time once it is taken", async (t) => {
    const { store } = subject();
    const [key, holder, waiter, other] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await wait(store, key, waiter);
    await store.release(key, holder);
    const offeredForMs = freeIn(await wait(store, key, other));
    t.true(
      offeredForMs !== undefined && offeredForMs > 0 && offeredForMs <= CLAIM_TIME_MS,
      String(offeredForMs),
    );
    t.deepEqual(await wait(store, key, waiter), { granted: true, fresh: true });
    const heldForMs = freeIn(await wait(store, key, other));
    t.true(heldForMs !== undefined && heldForMs > CLAIM_TIME_MS && heldForMs <= LONG_MS, String(heldForMs));
  });

  test("what is not taken in time goes to the next", async (t) => {
    const { store, elapse } = subject();
    const [key, holder, silent, next] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await wait(store, key, silent);
    await wait(store, key, next);
    await store.release(key, holder);
    t.false((await wait(store, key, next)).granted);
    await elapse(CLAIM_TIME_MS);
    t.true((await wait(store, key, next)).granted);
    t.false((await wait(store, key, silent)).granted);
  });

  test("a key that expired goes to the first who waits, whoever notices it", async (t) => {
    const { store, elapse } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const ear = listen(store, first);
    await acquire(store, key, holder);
    await wait(store, key, first);
    await wait(store, key, second);
    await renew(store, key, holder, SHORT_MS);
    await elapse(SHORT_MS);
    t.false((await wait(store, key, second)).granted);
    await ear.heard;
    t.true((await wait(store, key, first)).granted);
    ear.deafen();
  });

  test("one that is not heard of in time loses its place, and nobody else does", async (t) => {
    const { store, elapse } = subject();
    const [key, holder, silent, heardOf, third] = [newKey(), newId(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    for (const requestId of [silent, heardOf, third]) await wait(store, key, requestId);
    for (let n = 0; n < 6; n += 1) {
      await elapse(PLACE_TIME_MS / 6);
      for (const requestId of [third, heardOf]) t.false((await wait(store, key, requestId)).granted);
    }
    t.false((await wait(store, key, silent)).granted, "it has a place again, behind them");
    await store.release(key, holder);
    t.false((await wait(store, key, silent)).granted);
    t.true((await wait(store, key, heardOf)).granted);
    await store.release(key, heardOf);
    t.true((await wait(store, key, third)).granted);
    await store.release(key, third);
    t.true((await wait(store, key, silent)).granted);
    await store.release(key, silent);
    t.true(await isForgotten(store, key));
  });

  test("those who died in the queue leave nothing behind", async (t) => {
    const { store, elapse } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder);
    for (let n = 0; n < 5; n += 1) await wait(store, key, newId());
    await elapse(PLACE_TIME_MS);
    t.is(await release(store, key, holder), "released");
    t.true(await isForgotten(store, key));
  });

  test("who leaves has no place any more, and the others keep theirs", async (t) => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await wait(store, key, first);
    await wait(store, key, second);
    await store.leave(key, first);
    await store.release(key, holder);
    t.true((await wait(store, key, second)).granted);
    await store.release(key, second);
    t.true(await isForgotten(store, key));
  });

  test("who leaves when the queue has given it the lock hands it on, with a hint", async (t) => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const ear = listen(store, second);
    await acquire(store, key, holder);
    await wait(store, key, first);
    await wait(store, key, second);
    await store.release(key, holder);
    await store.leave(key, first);
    await ear.heard;
    t.true((await wait(store, key, second)).granted);
    await store.leave(key, second);
    t.true(await isForgotten(store, key), "the last one who leaves frees the key");
    ear.deafen();
  });

  test("one without a place, and without the lock, may leave all the same", async (t) => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder);
    await store.leave(key, newId());
    t.is(await release(store, key, holder), "released");
    await store.leave(key, newId());
    t.true(await isForgotten(store, key));
  });

  test("a release hands the lock straight to the caller's next when nobody else waits", async (t) => {
    const { store } = subject();
    const [key, holder, next, other] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    t.deepEqual(await store.release(key, holder, request(key, next)), {
      outcome: "released",
      handedOn: { granted: true, fresh: true },
    });
    const heldForMs = freeIn(await wait(store, key, other));
    t.true(heldForMs !== undefined && heldForMs > CLAIM_TIME_MS, "for the whole lock time");
    t.is(await renew(store, key, next, LONG_MS), "renewed");
  });

  test("the caller's next goes to the end of the queue when others wait", async (t) => {
    const { store } = subject();
    const [key, holder, other, next] = [newKey(), newId(), newId(), newId()];
    const ear = listen(store, other);
    await acquire(store, key, holder);
    await wait(store, key, other);
    const queued = { outcome: "released", isQueued: true } as const;
    t.deepEqual(await store.release(key, holder, request(key, next)), queued);
    await ear.heard;
    t.true((await wait(store, key, other)).granted);
    t.deepEqual(await store.release(key, other, request(key, newId())), queued);
    t.true((await wait(store, key, next)).granted);
    ear.deafen();
  });

  test("those in the queue who died do not keep the lock from the caller's next", async (t) => {
    const { store, elapse } = subject();
    const [key, holder, next] = [newKey(), newId(), newId()];
    await acquire(store, key, holder);
    await wait(store, key, newId());
    await elapse(PLACE_TIME_MS);
    const { handedOn } = await store.release(key, holder, request(key, next));
    t.true(handedOn?.granted);
    t.is(await release(store, key, next), "released");
    t.true(await isForgotten(store, key));
  });

  test("one who holds nothing any more hands nothing on, and its next gets no place", async (t) => {
    const { store, elapse } = subject();
    const [key, late, next, holder] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    t.deepEqual(await store.release(key, late, request(key, next)), { outcome: "expired" });
    await acquire(store, key, holder);
    t.deepEqual(await store.release(key, late, request(key, next)), { outcome: "stolen" });
    t.is(await release(store, key, holder), "released");
    t.true(await isForgotten(store, key));
  });

  test("a renewal of many tells of each how it went", async (t) => {
    const { store, elapse } = subject();
    const [mine, expired, stolen] = [newKey(), newKey(), newKey()];
    const requestId = newId();
    await acquire(store, mine, requestId);
    await acquire(store, expired, requestId, { lockTimeMs: SHORT_MS });
    await acquire(store, stolen, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    await acquire(store, stolen, newId());
    const holders = [expired, mine, stolen].map((key) => ({ key, requestId, lockTimeMs: 2 * LONG_MS }));
    t.deepEqual(await store.renew(holders), ["expired", "renewed", "stolen"]);
    const freeInMs = freeIn(await wait(store, mine, newId()));
    t.true(freeInMs !== undefined && freeInMs > LONG_MS);
    t.deepEqual(await store.renew([]), []);
  });

  test("a thousand locks are had, renewed and given back at once, each for itself", async (t) => {
    const { store } = subject();
    const keys = Array.from({ length: 1_000 }, newKey);
    const requestId = newId();
    const busy = new Set(keys.filter((_, index) => index % 7 === 0));
    await Promise.all([...busy].map((key) => acquire(store, key, newId())));
    const replies = await Promise.all(keys.map((key) => acquire(store, key, requestId)));
    t.true(keys.every((key, index) => replies[index]?.granted === !busy.has(key)));
    const renewed = await store.renew(keys.map((key) => ({ key, requestId, lockTimeMs: LONG_MS })));
    t.true(keys.every((key, index) => renewed[index] === (busy.has(key) ? "stolen" : "renewed")));
    const released = await Promise.all(keys.map((key) => release(store, key, requestId)));
    t.true(keys.every((key, index) => released[index] === (busy.has(key) ? "stolen" : "released")));
  });

  test("fencing tokens rise over waiting and handing on, and each stands for many", async (t) => {
    const { store } = subject();
    const [key, first, second, third, fourth] = [newKey(), newId(), newId(), newId(), newId()];
    const tokens = [token(await wait(store, key, first, { fencing: true }))];
    const { handedOn } = await store.release(key, first, request(key, second, { fencing: true }));
    tokens.push(token(handedOn));
    await wait(store, key, third, { fencing: true });
    await store.release(key, second);
    tokens.push(token(await wait(store, key, third, { fencing: true })));
    await store.release(key, third);
    tokens.push(token(await acquire(store, key, fourth, { fencing: true })));
    for (const [index, later] of tokens.slice(1).entries()) {
      t.true(later >= (tokens[index] ?? 0) + FENCING_STRIDE, tokens.join(", "));
    }
    t.true(tokens.every(Number.isSafeInteger));
  });

  test("one who waits without fencing is given no token", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    t.false("fencingToken" in (await wait(store, key, requestId)));
    const { handedOn } = await store.release(key, requestId, request(key, newId()));
    t.true(handedOn?.granted);
    t.false("fencingToken" in (handedOn ?? {}));
  });

  // ---- fencing ----------------------------------------------------------------------------------------

  test("a fencing token comes only to those who ask for one", async (t) => {
    const { store } = subject();
    const granted = await acquire(store, newKey(), newId(), { fencing: false });
    t.false("fencingToken" in granted);
  });

  test("a request that is granted again has the fencing token that it had", async (t) => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    const first = await acquire(store, key, requestId, { fencing: true });
    const again = await acquire(store, key, requestId, { fencing: true });
    t.is(token(again), token(first));
    t.like(again, { granted: true, fresh: false });
  });

  test("with fencing, too, a held key is refused", async (t) => {
    const { store } = subject();
    const key = newKey();
    await acquire(store, key, newId(), { fencing: true });
    t.false((await acquire(store, key, newId(), { fencing: true })).granted);
    t.true((freeIn(await wait(store, key, newId(), { fencing: true })) ?? 0) > 0);
  });

  test("fencing tokens rise with each holder, after a release and after an expiry", async (t) => {
    const { store, elapse } = subject();
    const key = newKey();
    const tokens: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const released = newId();
      tokens.push(token(await acquire(store, key, released, { fencing: true })));
      await store.release(key, released);
      tokens.push(token(await acquire(store, key, newId(), { fencing: true, lockTimeMs: SHORT_MS })));
      await elapse(SHORT_MS);
    }
    const rising = tokens.toSorted((a, b) => a - b);
    t.deepEqual(tokens, rising);
    t.is(new Set(tokens).size, tokens.length);
    t.true(tokens.every(Number.isSafeInteger));
  });

  test("keys do not touch each other", async (t) => {
    const { store } = subject();
    const [one, two, requestId] = [newKey(), newKey(), newId()];
    t.true((await acquire(store, one, requestId)).granted);
    t.true((await acquire(store, two, newId())).granted);
    t.is(await release(store, two, requestId), "stolen");
    t.is(await release(store, one, requestId), "released");
  });

  for (const awkward of ["with space", "Auftrag-Ä-注文-🔒", "a,b%2C", "line\nbreak", "quote\"'"]) {
    test(`a key may contain ${JSON.stringify(awkward)}`, async (t) => {
      const { store } = subject();
      const [key, requestId] = [`${newKey()}${awkward}`, newId()];
      t.true((await acquire(store, key, requestId, { fencing: true })).granted);
      t.is(await renew(store, key, requestId, LONG_MS), "renewed");
      t.is(await release(store, key, requestId), "released");
    });
  }

  for (const braces of ["{tag}", "a{tag}b{other}", "{open", "{{x}}"]) {
    test(`a key may contain the braces ${braces}, also with fencing`, async (t) => {
      const { store } = subject();
      const [key, requestId] = [`${newKey()}${braces}`, newId()];
      t.true((await acquire(store, key, requestId, { fencing: true })).granted);
      t.is(await release(store, key, requestId), "released");
    });
  }
}

interface Ear {
  readonly heard: Promise<void>;
  hasHeard(): boolean;
  deafen(): void;
}

/** What is hinted to the one who waits by the name of `requestId`. */
export function listen(store: Store, requestId: string): Ear {
  let hasHeard = false;
  const heard = deferred();
  const deafen = store.listen((hinted) => {
    if (hinted !== requestId) return;
    hasHeard = true;
    heard.resolve();
  });
  return { heard: heard.promise, hasHeard: () => hasHeard, deafen };
}

/** Resolves when the store's inbox is open: what it missed until then, it tells to everybody. */
export async function hearing(store: Store): Promise<void> {
  const open = deferred();
  const deafen = store.listen((requestId) => {
    if (requestId === undefined) open.resolve();
  });
  const [key, requestId] = [newKey(), newId()];
  await wait(store, key, requestId);
  await open.promise;
  await store.leave(key, requestId);
  deafen();
}

export function newKey(): string {
  return `LOCK_contract_${randomUUID()}`;
}

export function newId(): string {
  return randomUUID().replaceAll("-", "");
}

export interface Wishes {
  readonly lockTimeMs?: number;
  readonly fencing?: boolean;
}

export function request(
  key: string,
  requestId: string,
  { lockTimeMs = LONG_MS, fencing = false }: Wishes = {},
): AcquireRequest {
  return { key, requestId, lockTimeMs, fencing };
}

export function acquire(
  store: Store,
  key: string,
  requestId: string,
  wishes?: Wishes,
): Promise<AcquireReply> {
  return store.acquire(request(key, requestId, wishes));
}

export function wait(store: Store, key: string, requestId: string, wishes?: Wishes): Promise<AcquireReply> {
  return store.wait(request(key, requestId, wishes));
}

export async function renew(
  store: Store,
  key: string,
  requestId: string,
  lockTimeMs: number,
): Promise<RenewReply | undefined> {
  return (await store.renew([{ key, requestId, lockTimeMs }]))[0];
}

export async function release(store: Store, key: string, requestId: string): Promise<ReleaseReply> {
  return (await store.release(key, requestId)).outcome;
}

/** Whether nobody holds the key, and nobody has a place in its queue. */
export async function isForgotten(store: Store, key: string): Promise<boolean> {
  const [probe, next] = [newId(), newId()];
  if (!(await acquire(store, key, probe)).granted) return false;
  // The lock goes straight to the next only when nobody was there before.
  const { handedOn } = await store.release(key, probe, request(key, next));
  await store.leave(key, next);
  return handedOn !== undefined;
}

function freeIn(reply: AcquireReply): number | undefined {
  if (reply.granted) throw new Error("Expected the key to be held by another");
  return reply.freeInMs;
}

export function token(reply: AcquireReply | undefined): number {
  const { fencingToken } = reply as Granted;
  if (fencingToken === undefined) throw new Error("Expected a fencing token");
  return fencingToken;
}
