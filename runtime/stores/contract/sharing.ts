import assert from "node:assert/strict";
import type { AcquireReply } from "../port";
import { isShared, reservedFor } from "../value";
import {
  drop,
  freeIn,
  isForgotten,
  isHolding,
  listen,
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
  takenInTurn,
  timeLeft,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** As many as come. */
const READS = { permits: Infinity };
const TWO = { permits: 2 };
const THREE = { permits: 3 };
const BRIEF_MS = LONG_MS / 2;
/** The largest number of permits of which no test of a store has been warned. */
let unwarned = 4;

/** Several who hold a key together. */
export function sharing(test: RegisterTest, subject: () => Subject): void {
  test("those who may hold a key together do, and each gives back what is its own", async () => {
    const { store } = subject();
    const [key, one, other, third] = [newKey(), newId(), newId(), newId()];
    for (const id of [one, other, third]) assert.deepEqual(await take(store, key, id, READS), TAKEN);
    for (const id of [one, other, third]) assert.ok(await isHolding(store, key, id));
    assert.deepEqual(await drop(store, key, other), { released: true });
    assert.equal(await isHolding(store, key, other), false);
    assert.equal((await drop(store, key, other)).released, false, "a drop that is carried out twice");
    assert.deepEqual(await renew(store, key, one, LONG_MS), { renewed: true });
    assert.deepEqual(await drop(store, key, one), { released: true });
    assert.deepEqual(await drop(store, key, third), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("who holds a key alone does so beside nobody, whoever came first", async () => {
    const { store } = subject();
    const [key, writer, reader] = [newKey(), newId(), newId()];
    await take(store, key, writer);
    assert.deepEqual(await take(store, key, reader, READS), {
      acquired: false,
      holder: writer,
      freeInMs: undefined,
    });
    await drop(store, key, writer);
    assert.deepEqual(await take(store, key, reader, READS), TAKEN);
    const refused = await take(store, key, newId());
    assert.ok(!refused.acquired && isShared(refused.holder ?? ""), "it is told that the key is shared");
    assert.equal((await take(store, key, newId(), { permits: 1 })).acquired, false);
    assert.equal(((await renew(store, key, newId(), LONG_MS)) as { renewed?: boolean }).renewed, false);
  });

  test("so many hold a key together as its permits say, and of two numbers the smaller counts", async () => {
    const { store } = subject();
    const [key, other, ids] = [newKey(), newKey(), [newId(), newId(), newId()] as const];
    assert.ok((await take(store, key, ids[0], THREE)).acquired);
    assert.ok((await take(store, key, ids[1], TWO)).acquired);
    assert.ok(!(await take(store, key, ids[2], THREE)).acquired, "one who is inside says two");
    await drop(store, key, ids[1]);
    assert.ok((await take(store, key, ids[2], THREE)).acquired);
    await take(store, other, newId(), THREE);
    await take(store, other, newId(), THREE);
    assert.ok(!(await take(store, other, newId(), TWO)).acquired, "who asks says two");
    assert.ok((await take(store, other, newId(), THREE)).acquired);
  });

  test("who wants several permits gets as many as there are, at least one, and keeps them under one hold", async () => {
    const { store } = subject();
    const [key, one, other] = [newKey(), newId(), newId()];
    const five = (count: number): object => ({ permits: 5, count });
    assert.deepEqual(await take(store, key, one, five(3)), { acquired: true, count: 3 });
    assert.deepEqual(await take(store, key, other, five(3)), { acquired: true, count: 2 });
    assert.equal((await take(store, key, newId(), five(1))).acquired, false);
    assert.deepEqual(await drop(store, key, one), { released: true });
    assert.deepEqual(await take(store, key, newId(), five(5)), { acquired: true, count: 3 });
    await drop(store, key, other);
  });

  test("a renewal gives back permits that are not kept, also when it is carried out twice or late, and tells the next", async () => {
    const { store } = subject();
    const [key, one, waiting] = [newKey(), newId(), newId()];
    const keeping = async (count: number): Promise<unknown> =>
      (await store.renew([{ ...renewal(key, one), permits: 3, count }], TIMEOUT_MS))[0];
    await take(store, key, one, { permits: 3, count: 3 });
    assert.ok(!(await place(store, key, waiting, { permits: 3, count: 2 })).acquired);
    const ear = listen(store, waiting);
    for (const count of [1, 1, 2])
      assert.deepEqual(await keeping(count), { renewed: true, somebodyWaits: true });
    await ear.heard;
    ear.deafen();
    const reply = await place(store, key, waiting, { permits: 3, count: 3 });
    assert.deepEqual(reply, { acquired: true, count: 2 });
    assert.deepEqual(await keeping(3), { renewed: true });
    assert.equal((await take(store, key, newId(), THREE)).acquired, false, "what was given back is gone");
  });

  test("readers are beside readers alone, and those with permits beside others with permits", async () => {
    const { store } = subject();
    const [key, reader, few] = [newKey(), newId(), newId()];
    await take(store, key, reader, READS);
    assert.equal((await take(store, key, newId(), THREE)).acquired, false);
    await drop(store, key, reader);
    await take(store, key, few, THREE);
    assert.equal((await take(store, key, newId(), READS)).acquired, false);
    await drop(store, key, few);
    assert.ok(await isForgotten(store, key));
  });

  test("a reply to one who shares a key says whether somebody waits, and whether nobody stands behind", async () => {
    const { store } = subject();
    const [key, reader, writer, later] = [newKey(), newId(), newId(), newId()];
    assert.deepEqual(await take(store, key, reader, READS), TAKEN);
    const renewed = async (): Promise<unknown> =>
      (await store.renew([{ ...renewal(key, reader), ...READS }], TIMEOUT_MS))[0];
    assert.deepEqual(await renewed(), { renewed: true });
    await queued(store, key, writer);
    assert.deepEqual(await renewed(), { renewed: true, somebodyWaits: true });
    const isLast = async (): Promise<unknown> => {
      const reply = await place(store, key, later, READS);
      return !reply.acquired && reply.isLast;
    };
    assert.equal(await isLast(), true);
    await queued(store, key, newId());
    assert.equal(await isLast(), undefined);
    await store.dequeue(key, writer, TIMEOUT_MS);
    const joined = await place(store, key, later, READS);
    assert.ok(joined.acquired && joined.somebodyWaits === true);
  });

  test("what is told of a key that is shared is as long for many holders as for one", async () => {
    const { store } = subject();
    const [key, other] = [newKey(), newKey()];
    await take(store, key, newId(), READS);
    for (let count = 0; count < 50; count += 1) await take(store, other, newId(), READS);
    const told = async (of: string): Promise<unknown[]> => [
      await look(store, of),
      await take(store, of, newId()),
      await drop(store, of, newId()),
      await renew(store, of, newId(), 1),
    ];
    assert.deepEqual(await told(key), await told(other));
  });

  test("whoever may share a key is warned where another names another number", async () => {
    const { store } = subject();
    const [key, warned] = [newKey(), [] as string[]];
    const fewer = (unwarned += 1); // A store warns of the same but once.
    const [asFew, asMore] = [{ permits: fewer }, { permits: 2 * fewer }];
    const deafen = store.listen({
      onWakeUp() {},
      onReconnect() {},
      onWarning: (message) => void warned.push(message),
    });
    const told = (): string[] =>
      warned.filter((message) => message.includes(`permits=${fewer} and others with permits=${2 * fewer}`));
    await take(store, key, newId(), asFew);
    await take(store, key, newId(), asFew);
    assert.equal(told().length, 0);
    await take(store, key, newId(), asMore);
    await take(store, key, newId(), asMore);
    deafen();
    assert.equal(told().length, 1);
  });

  test("each hold of several ends by itself, and the key with the last", async () => {
    const { store, elapse } = subject();
    const [key, short, long, later] = [newKey(), newId(), newId(), newId()];
    await take(store, key, short, { ...TWO, lockTimeMs: SHORT_MS });
    await take(store, key, long, { ...TWO, lockTimeMs: LONG_MS });
    await elapse(SHORT_MS);
    assert.equal(await isHolding(store, key, short), false);
    assert.equal((await drop(store, key, short)).released, false);
    assert.equal(((await renew(store, key, short, LONG_MS)) as { renewed?: boolean }).renewed, false);
    assert.deepEqual(await take(store, key, later, { ...TWO, lockTimeMs: SHORT_MS }), TAKEN);
    await drop(store, key, long);
    await elapse(SHORT_MS);
    assert.equal(await look(store, key), undefined);
    assert.deepEqual(await take(store, key, newId()), TAKEN);
  });

  test("a renewal of one of several prolongs that one, and shortens none", async () => {
    const { store, elapse } = subject();
    const [key, one, other] = [newKey(), newId(), newId()];
    await take(store, key, one, { ...READS, lockTimeMs: LONG_MS / 2 });
    await take(store, key, other, { ...READS, lockTimeMs: SHORT_MS });
    assert.deepEqual(await renew(store, key, one, LONG_MS), { renewed: true });
    assert.deepEqual(await renew(store, key, one, SHORT_MS), { renewed: true });
    assert.ok((await timeLeft(store, key)) > LONG_MS / 2);
    await elapse(SHORT_MS);
    assert.deepEqual([await isHolding(store, key, one), await isHolding(store, key, other)], [true, false]);
  });

  test("a take of one of several that is carried out twice takes once, and finds itself", async () => {
    const { store } = subject();
    const [key, one, atPlace] = [newKey(), newId(), newId()];
    await take(store, key, one, TWO);
    for (const again of [await take(store, key, one, TWO), await place(store, key, atPlace, TWO, one)]) {
      assert.ok(!again.acquired && again.holder === one);
    }
    assert.ok((await take(store, key, newId(), TWO)).acquired, "there is room for another");
  });

  test("of many who ask at once, so many share the key as may", async () => {
    const { store } = subject();
    const key = newKey();
    const replies = await Promise.all(Array.from({ length: 20 }, () => take(store, key, newId(), THREE)));
    assert.equal(replies.filter((reply) => reply.acquired).length, 3);
  });

  test("readers who come later do not get before a writer that waits", async () => {
    const { store } = subject();
    const [key, reader, writer, later] = [newKey(), newId(), newId(), newId()];
    await take(store, key, reader, READS);
    await queued(store, key, writer);
    assert.ok(!(await take(store, key, newId(), READS)).acquired, "a passer-by");
    assert.ok(!(await place(store, key, later, READS)).acquired, "nor one who waits");
    const ear = listen(store, writer);
    await drop(store, key, reader);
    assert.equal(await look(store, key), reservedFor(writer));
    await ear.heard;
    ear.deafen();
    const held = await takenInTurn(store, key, writer);
    assert.ok(!(await place(store, key, later, READS)).acquired);
    await drop(store, key, held);
    await takenInTurn(store, key, later, READS);
  });

  test("a reader passes readers that wait, and no writer", async () => {
    const { store } = subject();
    const [key, held, writer, reader, first, later] = [newKey(), newId(), newId(), newId(), newId(), newId()];
    await take(store, key, held, READS);
    await queued(store, key, writer);
    assert.ok(!(await place(store, key, reader, READS)).acquired);
    assert.ok(!(await take(store, key, first, READS)).acquired);
    const beside = { ...renewal(key, held), permits: Infinity };
    assert.deepEqual(await store.renew([beside], TIMEOUT_MS), [{ renewed: true, somebodyWaits: true }]);
    await store.dequeue(key, writer, TIMEOUT_MS);
    assert.deepEqual(await store.renew([beside], TIMEOUT_MS), [{ renewed: true }]);
    assert.deepEqual(await take(store, key, first, READS), TAKEN);
    assert.deepEqual(await place(store, key, later, READS), TAKEN);
    // The one that was passed still waits, and is let in when it asks.
    assert.deepEqual(await place(store, key, reader, READS), TAKEN);
    assert.ok(!(await take(store, key, newId(), { permits: 2 })).acquired);
  });

  test("readers in a row go in together, each told by the one before, up to a writer", async () => {
    const { store } = subject();
    const [key, writer, second] = [newKey(), newId(), newId()];
    const readers = [newId(), newId(), newId()];
    const behind = newId();
    await take(store, key, writer);
    for (const one of readers) assert.ok(!(await place(store, key, one, READS)).acquired);
    await queued(store, key, second);
    assert.ok(!(await place(store, key, behind, READS)).acquired);
    const inside: string[] = [];
    const ears = [...readers, second].map((one) => listen(store, one));
    await drop(store, key, writer);
    for (const [index, one] of readers.entries()) {
      await ears[index]?.heard;
      inside.push(await takenInTurn(store, key, one, READS));
    }
    assert.ok(!(await place(store, key, second)).acquired);
    assert.ok(!(await place(store, key, behind, READS)).acquired, "behind a writer");
    for (const id of inside) await drop(store, key, id);
    await ears[3]?.heard;
    for (const ear of ears) ear.deafen();
    await takenInTurn(store, key, second);
  });

  test("where one of several leaves, or gives up its place, the first who waits is told", async () => {
    const { store } = subject();
    const [key, one, other, first, second] = [newKey(), newId(), newId(), newId(), newId()];
    await take(store, key, one, TWO);
    await take(store, key, other, TWO);
    assert.ok(!(await place(store, key, first, TWO)).acquired);
    const ear = listen(store, first);
    await drop(store, key, one);
    await ear.heard;
    ear.deafen();
    const inside = await takenInTurn(store, key, first, TWO);
    // Behind a writer there may be room for one who shares.
    await drop(store, key, other);
    await queued(store, key, first);
    assert.ok(!(await place(store, key, second, TWO)).acquired);
    const another = listen(store, second);
    await store.dequeue(key, first, TIMEOUT_MS);
    await another.heard;
    another.deafen();
    await takenInTurn(store, key, second, TWO);
    await drop(store, key, inside);
  });

  test("one who waits to share a key is told when there is room", async () => {
    const { store } = subject();
    const [key, waiting] = [newKey(), newId()];
    for (const lockTimeMs of [3 * LONG_MS, LONG_MS, 2 * LONG_MS]) {
      await take(store, key, newId(), { ...THREE, lockTimeMs });
    }
    const room = async (permits: number): Promise<number> => {
      const reply: AcquireReply = await place(store, key, waiting, { permits });
      return Math.round((freeIn(reply) ?? 0) / (LONG_MS / 100)) / 100;
    };
    // One of several may go in when the first leaves; who would be alone, or reads, when the last does.
    assert.deepEqual([await room(3), await room(2), await room(1), await room(Infinity)], [1, 1, 3, 3]);
  });

  test("many that are dropped together, where the store can, also are of several", async () => {
    const { store } = subject();
    const { releaseMany } = store;
    if (releaseMany === undefined) return;
    const [key, alone, one, other, held] = [newKey(), newKey(), newId(), newId(), newId()];
    await take(store, key, one, READS);
    await take(store, key, other, READS);
    await take(store, alone, held);
    const drops = [one, newId(), other].map((requestId) => ({ key, requestId }));
    const [first, second, third, last] = await releaseMany(
      [...drops, { key: alone, requestId: held }],
      TIMEOUT_MS,
    );
    assert.deepEqual([first, third, last], [{ released: true }, { released: true }, { released: true }]);
    assert.ok(second !== undefined && !(second instanceof Error) && !second.released);
    assert.ok((await isForgotten(store, key)) && (await isForgotten(store, alone)));
  });

  test("many that are asked for together, where the store can, also are to be shared", async () => {
    const { store } = subject();
    const { acquireMany, enqueueMany } = store;
    if (acquireMany === undefined || enqueueMany === undefined) return;
    const [key, alone, held, waits, first, second] = [newKey(), newKey(), newId(), newId(), newId(), newId()];
    const requests = [first, second, newId()].map((id) => request(key, id, TWO));
    const replies = await acquireMany([...requests, request(alone, held)], TIMEOUT_MS);
    assert.deepEqual(
      replies.map((reply) => "acquired" in reply && reply.acquired),
      [true, true, false, true],
    );
    const [inVain] = await enqueueMany([placing(key, waits, TWO)], TIMEOUT_MS);
    assert.ok(inVain !== undefined && "acquired" in inVain && !inVain.acquired);
    await drop(store, key, first);
    const [placed, other] = await enqueueMany(
      [placing(key, waits, TWO), placing(alone, newId())],
      TIMEOUT_MS,
    );
    assert.deepEqual(placed, TAKEN);
    assert.ok(other !== undefined && "acquired" in other && !other.acquired);
  });

  test("several that are renewed together in one key all are", async () => {
    const { store, elapse } = subject();
    const [key, ids] = [newKey(), [newId(), newId(), newId()]];
    for (const id of ids) await take(store, key, id, { ...READS, lockTimeMs: SHORT_MS * 30 });
    const requests = ids.map((id) => renewal(key, id, LONG_MS));
    assert.deepEqual(
      await store.renew(requests, TIMEOUT_MS),
      ids.map(() => ({ renewed: true })),
    );
    await elapse(SHORT_MS * 30);
    for (const id of ids) assert.ok(await isHolding(store, key, id));
  });

  test("who would share a key that holds an unknown form finds another's hold", async () => {
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
      const reply = await store.acquire(request(key, newId(), READS), TIMEOUT_MS);
      assert.deepEqual(reply, { acquired: false, holder: value, freeInMs: undefined });
      assert.equal((await drop(store, key, id)).released, false);
      assert.equal(await look(store, key), value);
    }
  });

  test("whoever inspects a key finds who holds it, for how long yet, and how many wait", async () => {
    const { store } = subject();
    if (store.inspect === undefined) return;
    const found = async (): Promise<string> => {
      const { holds, waiting } = (await store.inspect?.(key, TIMEOUT_MS)) ?? { holds: [], waiting: -1 };
      const told = holds.map(({ value, leftMs }) => {
        assert.ok(leftMs > 0 && leftMs <= LONG_MS + 1, `${leftMs} ms`);
        return `${value} ${leftMs > BRIEF_MS + 1 ? "for long" : "for a while"}`;
      });
      return [...told.toSorted(), `${waiting} wait`].join(", ");
    };
    const [key, one, other, waits] = [newKey(), newId(), newId(), newId()];
    assert.equal(await found(), "0 wait");
    await take(store, key, one);
    assert.equal(await found(), `${one} for long, 0 wait`);
    await queued(store, key, waits);
    assert.equal(await found(), `${one} for long, 1 wait`);
    await drop(store, key, one);
    assert.equal(await found(), `${reservedFor(waits)} for a while, 0 wait`);
    await store.dequeue(key, waits, TIMEOUT_MS);
    assert.equal(await found(), "0 wait");
    await take(store, key, one, READS);
    await take(store, key, other, { ...READS, lockTimeMs: BRIEF_MS });
    const both = [`${one} for long`, `${other} for a while`].toSorted();
    assert.equal(await found(), `${both.join(", ")}, 0 wait`);
    await drop(store, key, one);
    await drop(store, key, other);
    assert.ok(await isForgotten(store, key));
  });
}

/** A store that cannot have a key held by several says so. */
export function notSharing(test: RegisterTest, subject: () => Subject): void {
  test("who would share a key is refused for good", async () => {
    const { store } = subject();
    const [key, named] = [newKey(), { name: "LockMisconfiguredError" }];
    await assert.rejects(take(store, key, newId(), READS), named);
    await assert.rejects(place(store, key, newId(), READS), named);
    assert.equal(await look(store, key), undefined);
  });
}
