import assert from "node:assert/strict";
import { closedAfter } from "../value";
import {
  close,
  drop,
  isForgotten,
  LONG_MS,
  look,
  newId,
  newKey,
  place,
  placing,
  queued,
  renew,
  renewal,
  request,
  SHORT_MS,
  take,
  TAKEN,
  timeLeft,
  timeLeftBeyond,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Who holds: take, renew, drop, look. */
export function holding(test: RegisterTest, subject: () => Subject): void {
  test("a free key is taken", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await take(store, key, requestId), TAKEN);
    assert.equal(await look(store, key), requestId);
  });

  test("a key that is held is left to its holder, whose requestId is told", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    await take(store, key, holder);
    const reply = await take(store, key, newId());
    assert.ok(!reply.acquired);
    assert.equal(reply.holder, holder);
    assert.equal(await look(store, key), holder);
  });

  test("a take that is carried out twice takes once, and finds itself the second time", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await take(store, key, requestId, { lockTimeMs: LONG_MS }), TAKEN);
    const again = await take(store, key, requestId, { lockTimeMs: 2 * LONG_MS });
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    assert.ok((await timeLeft(store, key)) <= LONG_MS, "it does not prolong the hold");
  });

  test("of many who ask at once, one takes the key", async () => {
    const { store } = subject();
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 50 }, () => take(store, key, newId())));
    assert.equal(replies.filter((reply) => reply.acquired).length, 1);
  });

  test("a key that is not dropped is free when its lock time is over", async () => {
    const { store, elapse } = subject();
    const key = newKey();
    await take(store, key, newId(), { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.equal(await look(store, key), undefined);
    assert.deepEqual(await take(store, key, newId()), TAKEN);
  });

  test("a renewal gives the hold its whole lock time again, and the one that is asked for", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId, { lockTimeMs: LONG_MS / 2 });
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: true });
    const leftMs = await timeLeftBeyond(store, key, LONG_MS / 2);
    assert.ok(leftMs <= LONG_MS, String(leftMs));
  });

  test("a renewal never shortens a hold: one that comes late, or twice, leaves what a longer one gave", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId, { lockTimeMs: LONG_MS });
    await renew(store, key, requestId, 2 * LONG_MS);
    for (const lockTimeMs of [LONG_MS, SHORT_MS, SHORT_MS]) {
      assert.deepEqual(await renew(store, key, requestId, lockTimeMs), { renewed: true });
    }
    await timeLeftBeyond(store, key, LONG_MS);
  });

  test("a renewal after the end tells that the key is free, and does not bring the hold back", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: undefined });
    assert.deepEqual(await take(store, key, newId()), TAKEN);
  });

  test("a renewal of what another holds now tells who, and changes nothing", async () => {
    const { store, elapse } = subject();
    const [key, late, holder] = [newKey(), newId(), newId()];
    await take(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    await take(store, key, holder);
    assert.deepEqual(await renew(store, key, late, 2 * LONG_MS), { renewed: false, holder });
    assert.ok((await timeLeft(store, key)) <= LONG_MS);
  });

  test("a renewal of many tells of each how it went", async () => {
    const { store, elapse } = subject();
    const [mine, expired, another] = [newKey(), newKey(), newKey()];
    const ids = [newId(), newId(), newId()] as const;
    await take(store, expired, ids[0], { lockTimeMs: SHORT_MS });
    await take(store, mine, ids[1]);
    await take(store, another, ids[2], { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    const holder = newId();
    await take(store, another, holder);
    const requests = [renewal(expired, ids[0]), renewal(mine, ids[1], 2 * LONG_MS), renewal(another, ids[2])];
    assert.deepEqual(await store.renew(requests, TIMEOUT_MS), [
      { renewed: false, holder: undefined },
      { renewed: true },
      { renewed: false, holder },
    ]);
    await timeLeftBeyond(store, mine, LONG_MS);
    assert.deepEqual(await store.renew([], TIMEOUT_MS), []);
  });

  test("a key that is dropped is free at once", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    assert.deepEqual(await drop(store, key, requestId), { released: true });
    assert.equal(await look(store, key), undefined);
    assert.ok(await isForgotten(store, key));
  });

  test("a drop that is carried out twice drops once", async () => {
    const { store } = subject();
    const [key, requestId, next] = [newKey(), newId(), newId()];
    await take(store, key, requestId);
    await drop(store, key, requestId);
    assert.deepEqual(await drop(store, key, requestId), { released: false, holder: undefined });
    await take(store, key, next);
    assert.deepEqual(await drop(store, key, requestId), { released: false, holder: next });
    assert.equal(await look(store, key), next);
  });

  test("a drop after the end tells that the key is free", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    assert.deepEqual(await drop(store, key, requestId), { released: false, holder: undefined });
  });

  test("a drop that overtakes its take finds nothing; another one drops what the take then took", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await drop(store, key, requestId), { released: false, holder: undefined });
    assert.deepEqual(await take(store, key, requestId), TAKEN);
    assert.deepEqual(await drop(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("a key that is closed is nobody's, and nobody may have it until its time is over", async () => {
    const { store, elapse } = subject();
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    await take(store, key, requestId);
    assert.deepEqual(await close(store, key, requestId, 2 * LONG_MS), { released: true });
    assert.equal(await look(store, key), closedAfter(requestId));
    assert.ok(!(await take(store, key, newId())).acquired);
    await queued(store, key, waiting);
    assert.ok(!(await place(store, key, waiting)).acquired, "the first who waits, too");
    const holder = closedAfter(requestId);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder });
    assert.deepEqual(await drop(store, key, requestId), { released: false, holder });

    const short = newKey();
    await take(store, short, requestId);
    await close(store, short, requestId, SHORT_MS);
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(store, short));
  });

  test("a closing that is carried out twice closes once, and tells the same", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    await close(store, key, requestId, LONG_MS);
    assert.deepEqual(await close(store, key, requestId, 2 * LONG_MS), { released: true });
    assert.ok((await timeLeft(store, key)) <= LONG_MS, "it does not prolong it");
  });

  test("what is not held any more is not closed", async () => {
    const { store } = subject();
    const [key, requestId, next] = [newKey(), newId(), newId()];
    assert.deepEqual(await close(store, key, requestId, LONG_MS), { released: false, holder: undefined });
    await take(store, key, next);
    assert.deepEqual(await close(store, key, requestId, LONG_MS), { released: false, holder: next });
    assert.equal(await look(store, key), next);
    const closed = await store.releaseMany?.([{ key, requestId: next, cooldownMs: LONG_MS }], TIMEOUT_MS);
    if (closed !== undefined) assert.equal(await look(store, key), closedAfter(next));
  });

  test("a renewal that comes after its drop brings nothing back", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    await drop(store, key, requestId);
    assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: undefined });
    assert.ok(await isForgotten(store, key));
  });

  test("who looks is told what each key holds, and changes nothing", async () => {
    const { store, elapse } = subject();
    const [held, free, expired] = [newKey(), newKey(), newKey()];
    const [requestId, waiting] = [newId(), newId()];
    await take(store, held, requestId);
    await place(store, held, waiting);
    await take(store, expired, newId(), { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    for (let n = 0; n < 2; n += 1) {
      assert.deepEqual(await store.peek([free, held, expired], TIMEOUT_MS), [
        undefined,
        requestId,
        undefined,
      ]);
    }
    assert.deepEqual(await store.peek([], TIMEOUT_MS), []);
    assert.deepEqual(await drop(store, held, requestId), { released: true });
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
    test(`a key that holds ${JSON.stringify(value)} is held by another`, async () => {
      const { store, put } = subject();
      if (put === undefined) return;
      const [key, requestId, waiting] = [newKey(), newId(), newId()];
      await put(key, value, LONG_MS);
      const holder = value;
      const refused = await take(store, key, requestId);
      assert.ok(!refused.acquired);
      assert.equal(refused.holder, holder);
      const fenced = await take(store, key, newId(), { fencing: true });
      assert.ok(!fenced.acquired);
      assert.equal(fenced.holder, holder);
      assert.deepEqual(await renew(store, key, requestId, 2 * LONG_MS), { renewed: false, holder });
      assert.deepEqual(await drop(store, key, requestId), { released: false, holder });
      assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS), {
        released: false,
        holder,
      });
      const waits = await place(store, key, waiting);
      assert.ok(!waits.acquired);
      assert.equal(waits.holder, holder);
      assert.ok((waits.freeInMs ?? 0) > 0 && (waits.freeInMs ?? 0) <= LONG_MS);
      await store.dequeue(key, waiting, TIMEOUT_MS);
      assert.equal(await look(store, key), holder);
    });
  }

  test("a thousand locks are had, renewed and given back at once, each for itself", async () => {
    const { store } = subject();
    const holds = Array.from({ length: 1_000 }, () => ({ key: newKey(), requestId: newId() }));
    const other = newId();
    const busy = new Set(holds.filter((_, index) => index % 7 === 0));
    await Promise.all([...busy].map(({ key }) => take(store, key, other)));
    const taken = await Promise.all(holds.map(({ key, requestId }) => take(store, key, requestId)));
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
    const dropped = await Promise.all(holds.map(({ key, requestId }) => drop(store, key, requestId)));
    holds.forEach((hold, index) =>
      assert.deepEqual(
        dropped[index],
        busy.has(hold) ? { released: false, holder: other } : { released: true },
      ),
    );
  });

  test("many that are asked for together, where the store can, go as each would alone", async () => {
    const { store } = subject();
    const { acquireMany, releaseMany } = store;
    if (acquireMany === undefined || releaseMany === undefined) return;
    const [free, held, twice] = [newKey(), newKey(), newKey()];
    const [holder, own] = [newId(), newId()];
    await take(store, held, holder);
    await take(store, twice, own);
    const ids = [newId(), newId(), own] as const;
    const requests = [
      request(free, ids[0], { lockTimeMs: LONG_MS }),
      request(held, ids[1], { lockTimeMs: 2 * LONG_MS }),
      request(twice, ids[2], { lockTimeMs: 2 * LONG_MS }),
    ];
    const replies = await acquireMany(requests, TIMEOUT_MS);
    assert.deepEqual(replies, [
      TAKEN,
      { acquired: false, holder, freeInMs: undefined },
      { acquired: false, holder: own, freeInMs: undefined },
    ]);
    const drops = [free, held, twice].map((key, index) => ({ key, requestId: ids[index] ?? "" }));
    assert.deepEqual(await releaseMany(drops, TIMEOUT_MS), [
      { released: true },
      { released: false, holder },
      { released: true },
    ]);
    assert.ok((await isForgotten(store, free)) && (await isForgotten(store, twice)));
  });
}
