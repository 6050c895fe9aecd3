import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Store, StoreQueue } from "../../runtime/stores/port";
import { closedAfter } from "../../runtime/stores/value";
import {
  assertTimeLeft,
  BRIEF_MS,
  close,
  release,
  isForgotten,
  LONGEST_BRIEF_MS,
  LONG_MS,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  renewal,
  SHORT_MS,
  acquire,
  TAKEN,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Registers the tests of `acquire`, `renew`, `release`, and `peek`. */
export function holding(test: RegisterTest, subject: () => Subject): void {
  test("acquire() acquires a free key", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await acquire(store, key, requestId), TAKEN);
    assert.equal(await peek(store, key), requestId);
  });

  test("acquire() does not acquire a held key, and the reply names the requestId of the holder", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder);
    const reply = await acquire(store, key, newId());
    assert.ok(!reply.acquired);
    assert.equal(reply.holder, holder);
    assert.equal(await peek(store, key), holder);
  });

  test("acquire() that runs twice acquires once, and the second reply names its own requestId", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await acquire(store, key, requestId, { lockTimeMs: LONG_MS }), TAKEN);
    const again = await acquire(store, key, requestId, { lockTimeMs: 2 * LONG_MS });
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    await assertTimeLeft(store, key, { atMost: LONG_MS });
  });

  test("only one of many concurrent callers acquires the key", async () => {
    const { store } = subject();
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 50 }, () => acquire(store, key, newId())));
    assert.equal(replies.filter((reply) => reply.acquired).length, 1);
  });

  test("a key that nobody releases becomes free when its lock time is over", async () => {
    const { store, elapse } = subject();
    const key = newKey();
    await acquire(store, key, newId(), { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.equal(await peek(store, key), undefined);
    assert.deepEqual(await acquire(store, key, newId()), TAKEN);
  });

  test("a renewal extends the hold to the lock time in the request", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: LONG_MS / 2 });
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: true });
    await assertTimeLeft(store, key, { above: LONG_MS / 2, atMost: LONG_MS });
  });

  test("a hold lasts for the longer of its lock time and the lock time of its renewal", async () => {
    const { store, elapse } = subject();
    for (let briefMs = BRIEF_MS; ; briefMs *= 2) {
      const [renewed, shortened, twice] = [newKey(), newKey(), newKey()];
      const requestId = newId();
      await acquire(store, renewed, requestId, { lockTimeMs: briefMs });
      await acquire(store, shortened, requestId, { lockTimeMs: LONG_MS });
      await acquire(store, twice, requestId, { lockTimeMs: briefMs });
      const reply = await renew(store, renewed, requestId, LONG_MS);
      await renew(store, shortened, requestId, SHORT_MS);
      const again = await acquire(store, twice, requestId, { lockTimeMs: LONG_MS });
      const isLate = !isDeepStrictEqual(reply, { renewed: true }) || again.acquired;
      if (isLate && briefMs < LONGEST_BRIEF_MS) continue;
      await elapse(briefMs);
      const values = await store.peek([renewed, shortened, twice], TIMEOUT_MS);
      assert.deepEqual(values, [requestId, requestId, undefined]);
      return;
    }
  });

  test("a renewal never shortens a hold, even if it is late or runs twice", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: LONG_MS });
    await renew(store, key, requestId, 2 * LONG_MS);
    for (const lockTimeMs of [LONG_MS, SHORT_MS, SHORT_MS]) {
      assert.deepEqual(await renew(store, key, requestId, lockTimeMs), { renewed: true });
    }
    await assertTimeLeft(store, key, { above: LONG_MS });
  });

  test("a renewal after the expiry reports a free key, and does not restore the hold", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: undefined });
    assert.deepEqual(await acquire(store, key, newId()), TAKEN);
  });

  test("a renewal of an expired hold reports the new holder, and changes nothing", async () => {
    const { store, elapse } = subject();
    const [key, late, holder] = [newKey(), newId(), newId()];
    await acquire(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    await acquire(store, key, holder);
    assert.deepEqual(await renew(store, key, late, 2 * LONG_MS), { renewed: false, holder });
    await assertTimeLeft(store, key, { atMost: LONG_MS });
  });

  test("a renewal of several holds returns a reply for each", async () => {
    const { store, elapse } = subject();
    const [mine, expired, another] = [newKey(), newKey(), newKey()];
    const ids = [newId(), newId(), newId()] as const;
    await acquire(store, expired, ids[0], { lockTimeMs: SHORT_MS });
    await acquire(store, mine, ids[1]);
    await acquire(store, another, ids[2], { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    const holder = newId();
    await acquire(store, another, holder);
    const requests = [renewal(expired, ids[0]), renewal(mine, ids[1], 2 * LONG_MS), renewal(another, ids[2])];
    assert.deepEqual(await store.renew(requests, TIMEOUT_MS), [
      { renewed: false, holder: undefined },
      { renewed: true },
      { renewed: false, holder },
    ]);
    await assertTimeLeft(store, mine, { above: LONG_MS });
    assert.deepEqual(await store.renew([], TIMEOUT_MS), []);
  });

  test("a released key is free immediately", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    assert.deepEqual(await release(store, key, requestId), { released: true });
    assert.equal(await peek(store, key), undefined);
    assert.ok(await isForgotten(store, key));
  });

  test("release() that runs twice releases once", async () => {
    const { store } = subject();
    const [key, requestId, next] = [newKey(), newId(), newId()];
    await acquire(store, key, requestId);
    await release(store, key, requestId);
    assert.deepEqual(await release(store, key, requestId), { released: false, holder: undefined });
    await acquire(store, key, next);
    assert.deepEqual(await release(store, key, requestId), { released: false, holder: next });
    assert.equal(await peek(store, key), next);
  });

  test("release() after the expiry reports a free key", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.deepEqual(await release(store, key, requestId), { released: false, holder: undefined });
  });

  test("release() that overtakes its acquire() does nothing, and a second release() ends the hold", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await release(store, key, requestId), { released: false, holder: undefined });
    assert.deepEqual(await acquire(store, key, requestId), TAKEN);
    assert.deepEqual(await release(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("nobody holds or acquires a closed key until its cooldown is over", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    assert.deepEqual(await close(store, key, requestId, 2 * LONG_MS), { released: true });
    assert.equal(await peek(store, key), closedAfter(requestId));
    assert.ok(!(await acquire(store, key, newId())).acquired);
    const holder = closedAfter(requestId);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder });
    assert.deepEqual(await release(store, key, requestId), { released: false, holder });

    const short = newKey();
    await acquire(store, short, requestId);
    await close(store, short, requestId, SHORT_MS);
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(store, short));
  });

  test("release() with a cooldown that runs twice closes the key once, and the second reply is the same", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    await close(store, key, requestId, LONG_MS);
    assert.deepEqual(await close(store, key, requestId, 2 * LONG_MS), { released: true });
    await assertTimeLeft(store, key, { atMost: LONG_MS });
  });

  test("release() with a cooldown does not close a key that the request does not hold", async () => {
    const { store } = subject();
    const [key, requestId, next] = [newKey(), newId(), newId()];
    assert.deepEqual(await close(store, key, requestId, LONG_MS), { released: false, holder: undefined });
    await acquire(store, key, next);
    assert.deepEqual(await close(store, key, requestId, LONG_MS), { released: false, holder: next });
    assert.equal(await peek(store, key), next);
  });

  test("a renewal after the release does not restore the hold", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    await release(store, key, requestId);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: undefined });
    assert.ok(await isForgotten(store, key));
  });

  test("peek() returns the value of each key, and changes nothing", async () => {
    const { store, elapse } = subject();
    const [held, free, expired] = [newKey(), newKey(), newKey()];
    const requestId = newId();
    await acquire(store, held, requestId);
    if (store.queue !== undefined) await queued(store, held, newId());
    await acquire(store, expired, newId(), { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    for (let n = 0; n < 2; n += 1) {
      assert.deepEqual(await store.peek([free, held, expired], TIMEOUT_MS), [
        undefined,
        requestId,
        undefined,
      ]);
    }
    assert.deepEqual(await store.peek([], TIMEOUT_MS), []);
    assert.deepEqual(await release(store, held, requestId), { released: true });
  });

  for (const value of [
    "",
    "0",
    "1",
    "OK",
    "fresh",
    "closed:for good",
    "closed:",
    "shared:",
    `shared:${"a".repeat(32)}@1`,
    "reserved:",
    `reserved:${"b".repeat(32)}`,
    `reserved:${"b".repeat(32)} and more`,
    "what only a later version understands",
  ]) {
    test(`a key with the value ${JSON.stringify(value)} counts as held by another caller`, async () => {
      const { store, put } = subject();
      if (put === undefined) return;
      const [key, requestId] = [newKey(), newId()];
      await put(key, value, LONG_MS);
      const holder = value;
      const refused = await acquire(store, key, requestId);
      assert.ok(!refused.acquired);
      assert.equal(refused.holder, holder);
      const fenced = await acquire(store, key, newId(), { fencing: true });
      assert.ok(!fenced.acquired);
      assert.equal(fenced.holder, holder);
      assert.deepEqual(await renew(store, key, requestId, 2 * LONG_MS), { renewed: false, holder });
      assert.deepEqual(await release(store, key, requestId), { released: false, holder });
      if (store.queue !== undefined) await assertQueueRespects(store, store.queue, key, value);
      assert.equal(await peek(store, key), holder);
    });
  }

  test("a thousand locks are acquired, renewed, and released concurrently", async () => {
    const { store } = subject();
    const holds = Array.from({ length: 1_000 }, () => ({ key: newKey(), requestId: newId() }));
    const other = newId();
    const busy = new Set(holds.filter((_, index) => index % 7 === 0));
    await Promise.all([...busy].map(({ key }) => acquire(store, key, other)));
    const taken = await Promise.all(holds.map(({ key, requestId }) => acquire(store, key, requestId)));
    assert.ok(holds.every((hold, index) => taken[index]?.acquired === !busy.has(hold)));
    const renewed = await store.renew(
      holds.map(({ key, requestId }) => renewal(key, requestId)),
      TIMEOUT_MS,
    );
    holds.forEach((hold, index) =>
      assert.deepEqual(
        renewed[index],
        busy.has(hold) ? { renewed: false, holder: other } : { renewed: true },
      ),
    );
    const dropped = await Promise.all(holds.map(({ key, requestId }) => release(store, key, requestId)));
    holds.forEach((hold, index) =>
      assert.deepEqual(
        dropped[index],
        busy.has(hold) ? { released: false, holder: other } : { released: true },
      ),
    );
  });
}

/** Asserts that the queue treats the value of the key as the hold of another caller. */
async function assertQueueRespects(
  store: Store,
  queue: StoreQueue,
  key: string,
  holder: string,
): Promise<void> {
  const waiting = newId();
  assert.deepEqual(
    await queue.releaseAndEnqueue({ key, requestId: newId() }, placing(key, newId()), TIMEOUT_MS),
    { released: false, holder },
  );
  const enqueued = await enqueue(store, key, waiting);
  assert.ok(!enqueued.acquired);
  assert.equal(enqueued.holder, holder);
  assert.ok((enqueued.freeInMs ?? 0) > 0 && (enqueued.freeInMs ?? 0) <= LONG_MS);
  await queue.dequeue(key, waiting, TIMEOUT_MS);
}
