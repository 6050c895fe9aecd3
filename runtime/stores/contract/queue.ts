import assert from "node:assert/strict";
import { CLAIM_TIME_MS, TICKET_TIME_MS } from "../port";
import { reservedFor } from "../value";
import {
  drop,
  freeIn,
  isForgotten,
  listen,
  LONG_MS,
  look,
  newId,
  newKey,
  place,
  placing,
  queued,
  renew,
  take,
  TAKEN,
  takenInTurn,
  timeLeft,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Who comes next: place, leave, and the hints. */
export function queue(test: RegisterTest, subject: () => Subject): void {
  test("one who waits for a free key takes it", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await place(store, key, newId(), {}, requestId), TAKEN);
    assert.equal(await look(store, key), requestId, "with the requestId of the very command");
    assert.ok((await timeLeft(store, key)) > CLAIM_TIME_MS, "for the whole lock time");
    assert.deepEqual(await drop(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("those who wait have the key in the order in which they came, and nobody else gets between", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    const waiting = Array.from({ length: 5 }, newId);
    await take(store, key, holder);
    for (const one of waiting) await queued(store, key, one);
    for (const one of waiting.toReversed()) await queued(store, key, one);
    let last = holder;
    for (const [index, next] of waiting.entries()) {
      assert.deepEqual(await drop(store, key, last), { released: true });
      assert.equal((await take(store, key, newId())).acquired, false, "a passer-by does not get between");
      for (const later of waiting.slice(index + 1)) await queued(store, key, later);
      last = await takenInTurn(store, key, next);
    }
    assert.deepEqual(await drop(store, key, last), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("only the first of those who wait is told when the key becomes free, and each what it holds", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    const [one, two] = [await place(store, key, first), await place(store, key, second)];
    assert.ok(!one.acquired && !two.acquired);
    assert.deepEqual([one.holder, two.holder], [holder, holder]);
    assert.ok((one.freeInMs ?? 0) > 0);
    assert.equal(two.freeInMs, undefined, "it is free for the other, then");
    await store.dequeue(key, first, TIMEOUT_MS);
    assert.ok((freeIn(await place(store, key, second)) ?? 0) > 0);
  });

  test("a drop reserves the key for the first who waits, and hints to it alone", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const [ear, otherEar] = [listen(store, first), listen(store, second)];
    await take(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    assert.equal(ear.hasHeard(), false);
    assert.deepEqual(await drop(store, key, holder), { released: true });
    assert.equal(await look(store, key), reservedFor(first));
    await ear.heard;
    await queued(store, key, second);
    await takenInTurn(store, key, first);
    assert.equal(otherEar.hasHeard(), false);
    ear.deafen();
    otherEar.deafen();
  });

  test("who stopped to listen hears nothing more, and the others still do", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    const first = listen(store, waiting);
    const second = listen(store, waiting);
    first.deafen();
    const third = listen(store, waiting);
    await take(store, key, holder);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    await Promise.all([second.heard, third.heard]);
    assert.equal(first.hasHeard(), false);
    second.deafen();
    third.deafen();
  });

  test("a reservation is no hold: nobody renews it, drops it or takes it but with its place", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    await take(store, key, holder);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    const reserved = reservedFor(waiting);
    for (const requestId of [waiting, holder, newId()]) {
      assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: reserved });
      assert.deepEqual(await drop(store, key, requestId), { released: false, holder: reserved });
      const refused = await take(store, key, requestId);
      assert.ok(!refused.acquired);
      assert.equal(refused.holder, reserved);
    }
    await queued(store, key, holder);
    await takenInTurn(store, key, waiting);
  });

  test("a reservation lasts a short time only, and who takes it has the whole lock time", async () => {
    const { store } = subject();
    const [key, holder, waiting, other] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    const reservedForMs = freeIn(await place(store, key, other)) ?? 0;
    assert.ok(reservedForMs > 0 && reservedForMs <= CLAIM_TIME_MS, String(reservedForMs));
    await takenInTurn(store, key, waiting);
    const heldForMs = freeIn(await place(store, key, other)) ?? 0;
    assert.ok(heldForMs > CLAIM_TIME_MS && heldForMs <= LONG_MS, String(heldForMs));
  });

  test("a reservation that is not taken in time goes to the next", async () => {
    const { store, elapse } = subject();
    const [key, holder, silent, next] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await queued(store, key, silent);
    await queued(store, key, next);
    await drop(store, key, holder);
    await queued(store, key, next);
    await elapse(CLAIM_TIME_MS);
    await takenInTurn(store, key, next);
    await queued(store, key, silent);
  });

  test("a key that expired goes to the first who waits, whoever notices it", async () => {
    const { store, elapse } = subject();
    const [key, first, second] = [newKey(), newId(), newId()];
    const ear = listen(store, first);
    await take(store, key, newId(), { lockTimeMs: CLAIM_TIME_MS });
    await queued(store, key, first);
    await queued(store, key, second);
    await elapse(CLAIM_TIME_MS);
    const reply = await place(store, key, second);
    assert.ok(!reply.acquired);
    assert.equal(reply.holder, reservedFor(first));
    await ear.heard;
    await takenInTurn(store, key, first);
    ear.deafen();
  });

  test("one that is not heard of in time loses its place, and nobody else does", async () => {
    const { store, elapse } = subject();
    const [key, holder, silent, heardOf, third] = [newKey(), newId(), newId(), newId(), newId()];
    await take(store, key, holder);
    for (const one of [silent, heardOf, third]) await queued(store, key, one);
    for (let n = 0; n < 6; n += 1) {
      await elapse(TICKET_TIME_MS / 6);
      for (const one of [third, heardOf]) await queued(store, key, one);
    }
    await queued(store, key, silent); // It has a place again, behind them.
    await drop(store, key, holder);
    await queued(store, key, silent);
    let last = holder;
    for (const one of [heardOf, third, silent]) {
      await drop(store, key, last);
      last = await takenInTurn(store, key, one);
    }
    await drop(store, key, last);
    assert.ok(await isForgotten(store, key));
  });

  test("those who died in the queue leave nothing behind", async () => {
    const { store, elapse } = subject();
    const [key, holder] = [newKey(), newId()];
    await take(store, key, holder);
    for (let n = 0; n < 5; n += 1) await queued(store, key, newId());
    await elapse(TICKET_TIME_MS);
    assert.deepEqual(await drop(store, key, holder), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("who leaves has no place any more, and the others keep theirs", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    for (let n = 0; n < 2; n += 1) await store.dequeue(key, first, TIMEOUT_MS);
    await drop(store, key, holder);
    const last = await takenInTurn(store, key, second);
    await drop(store, key, last);
    assert.ok(await isForgotten(store, key));
  });

  test("who leaves when the key is reserved for it gives the turn to the next, with a hint; the last frees the key", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const ear = listen(store, second);
    await take(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    await drop(store, key, holder);
    for (let n = 0; n < 2; n += 1) await store.dequeue(key, first, TIMEOUT_MS);
    await ear.heard;
    assert.equal(await look(store, key), reservedFor(second));
    await store.dequeue(key, second, TIMEOUT_MS);
    assert.ok(await isForgotten(store, key));
    ear.deafen();
  });

  test("who leaves touches no hold, not even its own", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    await store.dequeue(key, waiting, TIMEOUT_MS);
    await take(store, key, holder);
    await store.dequeue(key, waiting, TIMEOUT_MS);
    await store.dequeue(key, holder, TIMEOUT_MS);
    assert.equal(await look(store, key), holder);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    const requestId = await takenInTurn(store, key, waiting);
    await store.dequeue(key, waiting, TIMEOUT_MS);
    assert.equal(await look(store, key), requestId);
    assert.deepEqual(await drop(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  // ---- twice, late, and in another order --------------------------------------------------------------

  test("a place that took the key finds itself when it is carried out again, and stands in no queue", async () => {
    const { store } = subject();
    const [key, waiting, requestId] = [newKey(), newId(), newId()];
    assert.deepEqual(await place(store, key, waiting, {}, requestId), TAKEN);
    const again = await place(store, key, waiting, { lockTimeMs: 2 * LONG_MS }, requestId);
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    assert.ok((await timeLeft(store, key)) <= LONG_MS);
    await drop(store, key, requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("a place that took its reservation finds itself when it is carried out again", async () => {
    const { store } = subject();
    const [key, holder, waiting, requestId] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    assert.deepEqual(await place(store, key, waiting, {}, requestId), TAKEN);
    const again = await place(store, key, waiting, {}, requestId);
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    await drop(store, key, requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("a place that comes again when its hold is over has a place at most, which ends by itself", async () => {
    const { store, elapse } = subject();
    const [key, waiting, requestId, holder] = [newKey(), newId(), newId(), newId()];
    await place(store, key, waiting, {}, requestId);
    await drop(store, key, requestId);
    await take(store, key, holder);
    const late = await place(store, key, waiting, {}, requestId);
    assert.ok(!late.acquired);
    assert.equal(late.holder, holder);
    await elapse(TICKET_TIME_MS);
    await drop(store, key, holder);
    assert.ok(await isForgotten(store, key));
  });

  test("a leave that overtakes its place costs the others the claim time at most", async () => {
    const { store, elapse } = subject();
    const [key, holder, gone, waiting] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await store.dequeue(key, gone, TIMEOUT_MS);
    await queued(store, key, gone);
    await queued(store, key, waiting);
    await drop(store, key, holder);
    await queued(store, key, waiting);
    await elapse(CLAIM_TIME_MS);
    await takenInTurn(store, key, waiting);
  });

  test("a leave that overtakes its place may be sent again, and ends what the place began", async () => {
    const { store } = subject();
    const [key, holder, gone] = [newKey(), newId(), newId()];
    await take(store, key, holder);
    await store.dequeue(key, gone, TIMEOUT_MS);
    await queued(store, key, gone);
    await store.dequeue(key, gone, TIMEOUT_MS);
    await drop(store, key, holder);
    assert.ok(await isForgotten(store, key));
  });

  test("many places that are asked for together, where the store can, go as each would alone", async () => {
    const { store } = subject();
    const { enqueueMany } = store;
    if (enqueueMany === undefined) return;
    const [free, held, given, twice] = [newKey(), newKey(), newKey(), newKey()];
    const [holder, own, first, second] = [newId(), newId(), newId(), newId()];
    for (const key of [held, given]) await take(store, key, holder);
    await take(store, twice, own);
    for (const key of [held, given]) await queued(store, key, first);
    await drop(store, given, holder);
    const ids = [newId(), newId(), newId(), own] as const;
    const replies = await enqueueMany(
      [
        placing(free, second, {}, ids[0]),
        placing(held, second, { lockTimeMs: 2 * LONG_MS }, ids[1]),
        placing(given, first, {}, ids[2]),
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
    for (const [index, key] of [free, held, given, twice].entries()) {
      assert.equal(await look(store, key), key === held ? holder : ids[index]);
    }
    await drop(store, held, holder);
    await drop(store, held, await takenInTurn(store, held, first));
    await takenInTurn(store, held, second);
  });
}
