import assert from "node:assert/strict";
import type { AcquireReply } from "../../runtime/stores/port";
import { isShared, reservedFor } from "../../runtime/stores/value";
import {
  assertTimeLeft,
  ifHas,
  queueOf,
  release,
  freeIn,
  isForgotten,
  isHolding,
  listen,
  LONG_MS,
  peek,
  newId,
  newKey,
  enqueue,
  queued,
  renew,
  renewal,
  SHORT_MS,
  acquire,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Any number of readers may hold the key together. */
const READS = { permits: Infinity };
const TWO = { permits: 2 };
const THREE = { permits: 3 };
/**
 * The number of permits in the last test of warnings. A store warns of the same numbers only once, so each run of that test needs new ones.
 */
let lastLimit = 4;

/** Registers the tests of shared holds. */
export function sharing(test: RegisterTest, subject: () => Subject): void {
  const inQueue = ifHas(test, subject, "queue");

  test("several readers hold a key together, and each releases only its own hold", async () => {
    const { store } = subject();
    const [key, one, other, third] = [newKey(), newId(), newId(), newId()];
    for (const id of [one, other, third]) assert.deepEqual(await acquire(store, key, id, READS), TAKEN);
    for (const id of [one, other, third]) assert.ok(await isHolding(store, key, id));
    assert.deepEqual(await release(store, key, other), { released: true });
    assert.equal(await isHolding(store, key, other), false);
    assert.equal((await release(store, key, other)).released, false, "release() that runs twice");
    assert.deepEqual(await renew(store, key, one, LONG_MS), { renewed: true });
    assert.deepEqual(await release(store, key, one), { released: true });
    assert.deepEqual(await release(store, key, third), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("an exclusive hold excludes shared holds, and shared holds exclude an exclusive one", async () => {
    const { store } = subject();
    const [key, writer, reader] = [newKey(), newId(), newId()];
    await acquire(store, key, writer);
    const busy = await acquire(store, key, reader, READS);
    assert.ok(!busy.acquired && busy.holder === writer);
    await release(store, key, writer);
    assert.deepEqual(await acquire(store, key, reader, READS), TAKEN);
    const refused = await acquire(store, key, newId());
    assert.ok(!refused.acquired && isShared(refused.holder ?? ""), "the reply says that the key is shared");
    assert.equal((await acquire(store, key, newId(), { permits: 1 })).acquired, false);
    assert.equal(((await renew(store, key, newId(), LONG_MS)) as { renewed?: boolean }).renewed, false);
  });

  test("permits limit the number of holders, and the smallest number of permits applies", async () => {
    const { store } = subject();
    const [key, other, ids] = [newKey(), newKey(), [newId(), newId(), newId()] as const];
    assert.ok((await acquire(store, key, ids[0], THREE)).acquired);
    assert.ok((await acquire(store, key, ids[1], TWO)).acquired);
    assert.ok(!(await acquire(store, key, ids[2], THREE)).acquired, "a holder allows two");
    await release(store, key, ids[1]);
    assert.ok((await acquire(store, key, ids[2], THREE)).acquired);
    await acquire(store, other, newId(), THREE);
    await acquire(store, other, newId(), THREE);
    assert.ok(!(await acquire(store, other, newId(), TWO)).acquired, "the caller allows two");
    assert.ok((await acquire(store, other, newId(), THREE)).acquired);
  });

  test("a request for several permits gets as many as there are, at least one, in one hold", async () => {
    const { store } = subject();
    const [key, one, other] = [newKey(), newId(), newId()];
    const five = (count: number): object => ({ permits: 5, count });
    assert.deepEqual(await acquire(store, key, one, five(3)), { acquired: true, count: 3 });
    assert.deepEqual(await acquire(store, key, other, five(3)), { acquired: true, count: 2 });
    assert.equal((await acquire(store, key, newId(), five(1))).acquired, false);
    assert.deepEqual(await release(store, key, one), { released: true });
    assert.deepEqual(await acquire(store, key, newId(), five(5)), { acquired: true, count: 3 });
    await release(store, key, other);
  });

  inQueue(
    "a renewal releases the permits that it does not keep, even if it is late or runs twice, and wakes the next waiter",
    async () => {
      const { store } = subject();
      const [key, one, waiting] = [newKey(), newId(), newId()];
      const keeping = async (count: number): Promise<unknown> =>
        (await store.renew([{ ...renewal(key, one), permits: 3, count }], TIMEOUT_MS))[0];
      await acquire(store, key, one, { permits: 3, count: 3 });
      assert.ok(!(await enqueue(store, key, waiting, { permits: 3, count: 2 })).acquired);
      const listener = listen(store, waiting);
      for (const count of [1, 1, 2])
        assert.deepEqual(await keeping(count), { renewed: true, hasWaiters: true });
      await listener.woken;
      listener.unsubscribe();
      const reply = await enqueue(store, key, waiting, { permits: 3, count: 3 });
      assert.deepEqual(reply, { acquired: true, count: 2 });
      assert.deepEqual(await keeping(3), { renewed: true });
      assert.equal(
        (await acquire(store, key, newId(), THREE)).acquired,
        false,
        "the released permits are not restored",
      );
    },
  );

  test("readers share a key only with readers, and callers with permits only with callers with permits", async () => {
    const { store } = subject();
    const [key, reader, few] = [newKey(), newId(), newId()];
    await acquire(store, key, reader, READS);
    assert.equal((await acquire(store, key, newId(), THREE)).acquired, false);
    await release(store, key, reader);
    await acquire(store, key, few, THREE);
    assert.equal((await acquire(store, key, newId(), READS)).acquired, false);
    await release(store, key, few);
    assert.ok(await isForgotten(store, key));
  });

  inQueue(
    "a reply about a shared key says whether somebody waits, and whether the waiter is the last in the queue",
    async () => {
      const { store } = subject();
      const [key, reader, writer, later] = [newKey(), newId(), newId(), newId()];
      assert.deepEqual(await acquire(store, key, reader, READS), TAKEN);
      const renewed = async (): Promise<unknown> =>
        (await store.renew([{ ...renewal(key, reader), ...READS }], TIMEOUT_MS))[0];
      assert.deepEqual(await renewed(), { renewed: true });
      await queued(store, key, writer);
      assert.deepEqual(await renewed(), { renewed: true, hasWaiters: true });
      const isLast = async (): Promise<unknown> => {
        const reply = await enqueue(store, key, later, READS);
        return !reply.acquired && reply.isLast;
      };
      assert.equal(await isLast(), true);
      await queued(store, key, newId());
      assert.equal(await isLast(), undefined);
      await queueOf(store).dequeue(key, writer, TIMEOUT_MS);
      const joined = await enqueue(store, key, later, READS);
      assert.ok(joined.acquired && joined.hasWaiters === true);
    },
  );

  test("replies about a shared key do not grow with the number of holders", async () => {
    const { store } = subject();
    const [key, other] = [newKey(), newKey()];
    await acquire(store, key, newId(), READS);
    for (let count = 0; count < 50; count += 1) await acquire(store, other, newId(), READS);
    const repliesFor = async (of: string): Promise<unknown[]> => [
      await peek(store, of),
      await acquire(store, of, newId()),
      await release(store, of, newId()),
      await renew(store, of, newId(), 1),
    ];
    assert.deepEqual(await repliesFor(key), await repliesFor(other));
  });

  test("a store warns once if callers share a key with different numbers of permits", async () => {
    const { store } = subject();
    if (store.listen === undefined) return;
    const [key, warnings] = [newKey(), [] as string[]];
    const fewer = (lastLimit += 1); // A store warns of the same numbers only once.
    const [asFew, asMore] = [{ permits: fewer }, { permits: 2 * fewer }];
    const unsubscribe = store.listen({
      onWakeUp() {},
      onReconnect() {},
      onWarning: (message) => void warnings.push(message),
    });
    const matching = (): string[] =>
      warnings.filter((message) => message.includes(`permits=${fewer} and permits=${2 * fewer}`));
    await acquire(store, key, newId(), asFew);
    await acquire(store, key, newId(), asFew);
    assert.equal(matching().length, 0);
    await acquire(store, key, newId(), asMore);
    await acquire(store, key, newId(), asMore);
    unsubscribe();
    assert.equal(matching().length, 1);
  });

  test("each shared hold expires by itself, and the key becomes free with the last one", async () => {
    const { store, elapse } = subject();
    const [key, short, long, later] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, short, { ...TWO, lockTimeMs: SHORT_MS });
    await acquire(store, key, long, { ...TWO, lockTimeMs: LONG_MS });
    await elapse(SHORT_MS);
    assert.equal(await isHolding(store, key, short), false);
    assert.equal((await release(store, key, short)).released, false);
    assert.equal(((await renew(store, key, short, LONG_MS)) as { renewed?: boolean }).renewed, false);
    assert.deepEqual(await acquire(store, key, later, { ...TWO, lockTimeMs: SHORT_MS }), TAKEN);
    await release(store, key, long);
    await elapse(SHORT_MS);
    assert.equal(await peek(store, key), undefined);
    assert.deepEqual(await acquire(store, key, newId()), TAKEN);
  });

  test("a renewal of a shared hold extends only that hold, and never shortens one", async () => {
    const { store, elapse } = subject();
    const [key, one, other] = [newKey(), newId(), newId()];
    await acquire(store, key, one, { ...READS, lockTimeMs: LONG_MS / 2 });
    await acquire(store, key, other, { ...READS, lockTimeMs: SHORT_MS });
    assert.deepEqual(await renew(store, key, one, LONG_MS), { renewed: true });
    assert.deepEqual(await renew(store, key, one, SHORT_MS), { renewed: true });
    await assertTimeLeft(store, key, { above: LONG_MS / 2 });
    await elapse(SHORT_MS);
    assert.deepEqual([await isHolding(store, key, one), await isHolding(store, key, other)], [true, false]);
  });

  test("a request for a shared key that runs twice acquires once, and the second reply names its own requestId", async () => {
    const { store } = subject();
    const [key, one, ticket] = [newKey(), newId(), newId()];
    await acquire(store, key, one, TWO);
    const replies = [await acquire(store, key, one, TWO)];
    if (store.queue !== undefined) replies.push(await enqueue(store, key, ticket, TWO, one));
    for (const again of replies) assert.ok(!again.acquired && again.holder === one);
    assert.ok((await acquire(store, key, newId(), TWO)).acquired, "there is room for another");
  });

  test("exactly as many concurrent callers acquire the key as it has permits", async () => {
    const { store } = subject();
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 20 }, () => acquire(store, key, newId(), THREE)));
    assert.equal(replies.filter((reply) => reply.acquired).length, 3);
  });

  inQueue("later readers do not overtake a waiting writer", async () => {
    const { store } = subject();
    const [key, reader, writer, later] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, reader, READS);
    await queued(store, key, writer);
    assert.ok(!(await acquire(store, key, newId(), READS)).acquired, "a newcomer");
    assert.ok(!(await enqueue(store, key, later, READS)).acquired, "a waiter");
    const listener = listen(store, writer);
    await release(store, key, reader);
    assert.equal(await peek(store, key), reservedFor(writer));
    await listener.woken;
    listener.unsubscribe();
    const held = await acquiredInTurn(store, key, writer);
    assert.ok(!(await enqueue(store, key, later, READS)).acquired);
    await release(store, key, held);
    await acquiredInTurn(store, key, later, READS);
  });

  inQueue("a reader overtakes waiting readers, but not a waiting writer", async () => {
    const { store } = subject();
    const [key, held, writer, reader, first, later] = [newKey(), newId(), newId(), newId(), newId(), newId()];
    await acquire(store, key, held, READS);
    await queued(store, key, writer);
    assert.ok(!(await enqueue(store, key, reader, READS)).acquired);
    assert.ok(!(await acquire(store, key, first, READS)).acquired);
    const readerRenewal = { ...renewal(key, held), permits: Infinity };
    assert.deepEqual(await store.renew([readerRenewal], TIMEOUT_MS), [{ renewed: true, hasWaiters: true }]);
    await queueOf(store).dequeue(key, writer, TIMEOUT_MS);
    assert.deepEqual(await store.renew([readerRenewal], TIMEOUT_MS), [{ renewed: true }]);
    assert.deepEqual(await acquire(store, key, first, READS), TAKEN);
    assert.deepEqual(await enqueue(store, key, later, READS), TAKEN);
    // The reader that was overtaken still waits, and acquires the key when it asks.
    assert.deepEqual(await enqueue(store, key, reader, READS), TAKEN);
    assert.ok(!(await acquire(store, key, newId(), { permits: 2 })).acquired);
  });

  inQueue(
    "consecutive readers in the queue acquire the key together, each woken by the one before, up to the next writer",
    async () => {
      const { store } = subject();
      const [key, writer, second] = [newKey(), newId(), newId()];
      const readers = [newId(), newId(), newId()];
      const behind = newId();
      await acquire(store, key, writer);
      for (const one of readers) assert.ok(!(await enqueue(store, key, one, READS)).acquired);
      await queued(store, key, second);
      assert.ok(!(await enqueue(store, key, behind, READS)).acquired);
      const inside: string[] = [];
      const listeners = [...readers, second].map((one) => listen(store, one));
      await release(store, key, writer);
      for (const [index, one] of readers.entries()) {
        await listeners[index]?.woken;
        inside.push(await acquiredInTurn(store, key, one, READS));
      }
      assert.ok(!(await enqueue(store, key, second)).acquired);
      assert.ok(!(await enqueue(store, key, behind, READS)).acquired, "behind a writer");
      for (const id of inside) await release(store, key, id);
      await listeners[3]?.woken;
      for (const listener of listeners) listener.unsubscribe();
      await acquiredInTurn(store, key, second);
    },
  );

  inQueue(
    "the first waiter is woken if a shared hold is released, or if the waiter in front of it leaves the queue",
    async () => {
      const { store } = subject();
      const [key, one, other, first, second] = [newKey(), newId(), newId(), newId(), newId()];
      await acquire(store, key, one, TWO);
      await acquire(store, key, other, TWO);
      assert.ok(!(await enqueue(store, key, first, TWO)).acquired);
      const listener = listen(store, first);
      await release(store, key, one);
      await listener.woken;
      listener.unsubscribe();
      const inside = await acquiredInTurn(store, key, first, TWO);
      // A caller that shares the key waits behind a writer, even if there is room.
      await release(store, key, other);
      await queued(store, key, first);
      assert.ok(!(await enqueue(store, key, second, TWO)).acquired);
      const another = listen(store, second);
      await queueOf(store).dequeue(key, first, TIMEOUT_MS);
      await another.woken;
      another.unsubscribe();
      await acquiredInTurn(store, key, second, TWO);
      await release(store, key, inside);
    },
  );

  inQueue("a waiter for a shared key learns when there will be room", async () => {
    const { store } = subject();
    const [key, waiting] = [newKey(), newId()];
    for (const lockTimeMs of [3 * LONG_MS, LONG_MS, 2 * LONG_MS]) {
      await acquire(store, key, newId(), { ...THREE, lockTimeMs });
    }
    const room = async (permits: number): Promise<number> => {
      const reply: AcquireReply = await enqueue(store, key, waiting, { permits });
      return Math.round((freeIn(reply) ?? 0) / (LONG_MS / 100)) / 100;
    };
    // A caller with permits has room when the first hold ends. An exclusive caller or a reader has to wait for the last one.
    assert.deepEqual([await room(3), await room(2), await room(1), await room(Infinity)], [1, 1, 3, 3]);
  });

  test("one command renews several holds of one key", async () => {
    const { store, elapse } = subject();
    const [key, ids] = [newKey(), [newId(), newId(), newId()]];
    for (const id of ids) await acquire(store, key, id, { ...READS, lockTimeMs: SHORT_MS * 30 });
    const requests = ids.map((id) => renewal(key, id, LONG_MS));
    assert.deepEqual(
      await store.renew(requests, TIMEOUT_MS),
      ids.map(() => ({ renewed: true })),
    );
    await elapse(SHORT_MS * 30);
    for (const id of ids) assert.ok(await isHolding(store, key, id));
  });

  test("a caller of a shared lock treats an unknown value as another caller's hold", async () => {
    const { store, put } = subject();
    if (put === undefined) return;
    const id = "a".repeat(32);
    for (const value of [
      "shared:",
      `shared:${id}@9/2`,
      "shared:permits:",
      "shared:permits:2 ",
      "shared:readers ",
    ]) {
      const key = newKey();
      await put(key, value, LONG_MS);
      const reply = await acquire(store, key, newId(), READS);
      assert.ok(!reply.acquired && reply.holder === value);
      assert.equal((await release(store, key, id)).released, false);
      assert.equal(await peek(store, key), value);
    }
  });
}

/** Registers the tests of a store that does not support shared holds. */
export function notSharing(test: RegisterTest, subject: () => Subject): void {
  test("a store without shared locks rejects a request for one with LockMisconfiguredError", async () => {
    const { store } = subject();
    const [key, named] = [newKey(), { name: "LockMisconfiguredError" }];
    await assert.rejects(acquire(store, key, newId(), READS), named);
    if (store.queue !== undefined) await assert.rejects(enqueue(store, key, newId(), READS), named);
    assert.equal(await peek(store, key), undefined);
  });
}
