import assert from "node:assert/strict";
import { closedAfter } from "../../runtime/stores/value";
import {
  acquire,
  adminOf,
  batchOf,
  ifHas,
  isForgotten,
  LONG_MS,
  newId,
  newKey,
  peek,
  placing,
  queued,
  release,
  request,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

const READS = { permits: Infinity };
const TWO = { permits: 2 };

/** Registers the tests of commands for many keys. */
export function batches(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "batch");
  const inQueue = ifHas(given, subject, "batch", "queue");

  test("acquireMany() and releaseMany() reply as single commands do", async () => {
    const { store } = subject();
    const batch = batchOf(store);
    const [free, held, twice] = [newKey(), newKey(), newKey()];
    const [holder, own] = [newId(), newId()];
    await acquire(store, held, holder);
    await acquire(store, twice, own);
    const ids = [newId(), newId(), own] as const;
    const requests = [
      request(free, ids[0], { lockTimeMs: LONG_MS }),
      request(held, ids[1], { lockTimeMs: 2 * LONG_MS }),
      request(twice, ids[2], { lockTimeMs: 2 * LONG_MS }),
    ];
    const replies = await batch.acquireMany(requests, TIMEOUT_MS);
    assert.deepEqual(replies, [
      TAKEN,
      { acquired: false, holder, freeInMs: undefined },
      { acquired: false, holder: own, freeInMs: undefined },
    ]);
    const releases = [free, held, twice].map((key, index) => ({ key, requestId: ids[index] ?? "" }));
    assert.deepEqual(await batch.releaseMany(releases, TIMEOUT_MS), [
      { released: true },
      { released: false, holder },
      { released: true },
    ]);
    assert.ok((await isForgotten(store, free)) && (await isForgotten(store, twice)));
  });

  test("releaseMany() closes a key for its cooldown", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    await batchOf(store).releaseMany([{ key, requestId, cooldownMs: LONG_MS }], TIMEOUT_MS);
    assert.equal(await peek(store, key), closedAfter(requestId));
  });

  inQueue("enqueueMany(), if the store has it, replies as single commands do", async () => {
    const { store } = subject();
    const batch = batchOf(store);
    if (batch.enqueueMany === undefined) return;
    const [free, held, reserved, twice] = [newKey(), newKey(), newKey(), newKey()];
    const [holder, own, first, second] = [newId(), newId(), newId(), newId()];
    for (const key of [held, reserved]) await acquire(store, key, holder);
    await acquire(store, twice, own);
    for (const key of [held, reserved]) await queued(store, key, first);
    await release(store, reserved, holder);
    const ids = [newId(), newId(), newId(), own] as const;
    const replies = await batch.enqueueMany(
      [
        placing(free, second, {}, ids[0]),
        placing(held, second, { lockTimeMs: 2 * LONG_MS }, ids[1]),
        placing(reserved, first, {}, ids[2]),
        placing(twice, second, {}, ids[3]),
      ],
      TIMEOUT_MS,
    );
    assert.deepEqual(replies, [
      TAKEN,
      { acquired: false, holder, freeInMs: undefined },
      TAKEN,
      { acquired: false, holder: own, freeInMs: undefined },
    ]);
    for (const [index, key] of [free, held, reserved, twice].entries()) {
      assert.equal(await peek(store, key), key === held ? holder : ids[index]);
    }
    await release(store, held, holder);
    await release(store, held, await acquiredInTurn(store, held, first));
    await acquiredInTurn(store, held, second);
  });

  ifHas(
    given,
    subject,
    "batch",
    "admin",
    "queue",
  )("releaseMany() also ends revoked holds", async () => {
    const { store } = subject();
    const ids = [newId(), newId(), newId()];
    const holds = ids.map((requestId) => ({ key: newKey(), requestId }));
    for (const { key, requestId } of holds) await acquire(store, key, requestId);
    const [first, second] = holds;
    assert.ok(first !== undefined && second !== undefined);
    await queued(store, second.key, newId());
    for (const hold of [first, second]) await adminOf(store).revoke(hold, TIMEOUT_MS);
    const replies = await batchOf(store).releaseMany(holds, TIMEOUT_MS);
    assert.deepEqual(
      replies,
      holds.map(() => ({ released: true })),
    );
    assert.ok(await isForgotten(store, first.key));
    assert.match(String(await peek(store, second.key)), /^reserved:/);
  });
}

/** Registers the tests of commands for many keys, some of which are shared. */
export function sharingInBatches(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "batch");

  test("releaseMany() also releases shared holds", async () => {
    const { store } = subject();
    const [key, alone, one, other, held] = [newKey(), newKey(), newId(), newId(), newId()];
    await acquire(store, key, one, READS);
    await acquire(store, key, other, READS);
    await acquire(store, alone, held);
    const releases = [one, newId(), other].map((requestId) => ({ key, requestId }));
    const [first, second, third, last] = await batchOf(store).releaseMany(
      [...releases, { key: alone, requestId: held }],
      TIMEOUT_MS,
    );
    assert.deepEqual([first, third, last], [{ released: true }, { released: true }, { released: true }]);
    assert.ok(second !== undefined && !(second instanceof Error) && !second.released);
    assert.ok((await isForgotten(store, key)) && (await isForgotten(store, alone)));
  });

  test("acquireMany() also acquires shared holds", async () => {
    const { store } = subject();
    const [key, alone] = [newKey(), newKey()];
    const requests = [newId(), newId(), newId()].map((id) => request(key, id, TWO));
    const replies = await batchOf(store).acquireMany([...requests, request(alone, newId())], TIMEOUT_MS);
    assert.deepEqual(
      replies.map((reply) => "acquired" in reply && reply.acquired),
      [true, true, false, true],
    );
  });

  ifHas(
    test,
    subject,
    "queue",
  )("enqueueMany(), if the store has it, also acquires shared holds", async () => {
    const { store } = subject();
    const batch = batchOf(store);
    if (batch.enqueueMany === undefined) return;
    const [key, alone, waiter, first] = [newKey(), newKey(), newId(), newId()];
    for (const id of [first, newId()]) await acquire(store, key, id, TWO);
    await acquire(store, alone, newId());
    const [refused] = await batch.enqueueMany([placing(key, waiter, TWO)], TIMEOUT_MS);
    assert.ok(refused !== undefined && "acquired" in refused && !refused.acquired);
    await release(store, key, first);
    const [placed, other] = await batch.enqueueMany(
      [placing(key, waiter, TWO), placing(alone, newId())],
      TIMEOUT_MS,
    );
    assert.deepEqual(placed, TAKEN);
    assert.ok(other !== undefined && "acquired" in other && !other.acquired);
  });
}
