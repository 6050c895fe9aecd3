import assert from "node:assert/strict";
import { CLAIM_TIME_MS, TICKET_TIME_MS } from "../../runtime/stores/port";
import { closedAfter, reservedFor } from "../../runtime/stores/value";
import {
  assertTimeLeft,
  close,
  release,
  freeIn,
  ifHas,
  isForgotten,
  listen,
  LONG_MS,
  peek,
  newId,
  newKey,
  enqueue,
  queued,
  queueOf,
  renew,
  acquire,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Registers the tests of `enqueue`, `dequeue`, and wake-ups. */
export function queue(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "queue");

  test("enqueue() acquires a free key", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await enqueue(store, key, newId(), {}, requestId), TAKEN);
    assert.equal(await peek(store, key), requestId, "with the requestId of that command");
    await assertTimeLeft(store, key, { above: CLAIM_TIME_MS });
    assert.deepEqual(await release(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("waiters acquire the key in the order in which they came, and no other caller gets in between", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    const waiting = Array.from({ length: 5 }, newId);
    await acquire(store, key, holder);
    for (const one of waiting) await queued(store, key, one);
    for (const one of waiting.toReversed()) await queued(store, key, one);
    let last = holder;
    for (const [index, next] of waiting.entries()) {
      assert.deepEqual(await release(store, key, last), { released: true });
      assert.equal(
        (await acquire(store, key, newId())).acquired,
        false,
        "a newcomer does not get in between",
      );
      for (const later of waiting.slice(index + 1)) await queued(store, key, later);
      last = await acquiredInTurn(store, key, next);
    }
    assert.deepEqual(await release(store, key, last), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("each waiter learns the value of the key, and only the first one learns when it becomes free", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    const [one, two] = [await enqueue(store, key, first), await enqueue(store, key, second)];
    assert.ok(!one.acquired && !two.acquired);
    assert.deepEqual([one.holder, two.holder], [holder, holder]);
    assert.ok((one.freeInMs ?? 0) > 0);
    assert.equal(two.freeInMs, undefined, "the first waiter acquires it before");
    await queueOf(store).dequeue(key, first, TIMEOUT_MS);
    assert.ok((freeIn(await enqueue(store, key, second)) ?? 0) > 0);
  });

  test("release() reserves the key for the first waiter, and wakes only that one", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const [listener, otherListener] = [listen(store, first), listen(store, second)];
    await acquire(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    assert.equal(listener.isWoken(), false);
    assert.deepEqual(await release(store, key, holder), { released: true });
    assert.equal(await peek(store, key), reservedFor(first));
    await listener.woken;
    await queued(store, key, second);
    await acquiredInTurn(store, key, first);
    assert.equal(otherListener.isWoken(), false);
    listener.unsubscribe();
    otherListener.unsubscribe();
  });

  test("a listener that unsubscribed gets no wake-ups, and the others still do", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    const first = listen(store, waiting);
    const second = listen(store, waiting);
    first.unsubscribe();
    const third = listen(store, waiting);
    await acquire(store, key, holder);
    await queued(store, key, waiting);
    await release(store, key, holder);
    await Promise.all([second.woken, third.woken]);
    assert.equal(first.isWoken(), false);
    second.unsubscribe();
    third.unsubscribe();
  });

  test("a reservation is not a hold: nobody renews or releases it, and only its ticket acquires the key", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    await acquire(store, key, holder);
    await queued(store, key, waiting);
    await release(store, key, holder);
    const reserved = reservedFor(waiting);
    for (const requestId of [waiting, holder, newId()]) {
      assert.deepEqual(await renew(store, key, requestId, LONG_MS), { renewed: false, holder: reserved });
      assert.deepEqual(await release(store, key, requestId), { released: false, holder: reserved });
      const refused = await acquire(store, key, requestId);
      assert.ok(!refused.acquired);
      assert.equal(refused.holder, reserved);
    }
    await queued(store, key, holder);
    await acquiredInTurn(store, key, waiting);
  });

  test("a reservation lasts a short time, and the waiter that uses it gets the whole lock time", async () => {
    const { store } = subject();
    const [key, holder, waiting, other] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await queued(store, key, waiting);
    await release(store, key, holder);
    const reservedForMs = freeIn(await enqueue(store, key, other)) ?? 0;
    assert.ok(reservedForMs > 0 && reservedForMs <= CLAIM_TIME_MS, String(reservedForMs));
    await acquiredInTurn(store, key, waiting);
    const heldForMs = freeIn(await enqueue(store, key, other)) ?? 0;
    assert.ok(heldForMs > CLAIM_TIME_MS && heldForMs <= LONG_MS, String(heldForMs));
  });

  test("a reservation that its waiter does not use in time goes to the next waiter", async () => {
    const { store, elapse } = subject();
    const [key, holder, silent, next] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await queued(store, key, silent);
    await queued(store, key, next);
    await release(store, key, holder);
    await queued(store, key, next);
    await elapse(CLAIM_TIME_MS);
    await acquiredInTurn(store, key, next);
    await queued(store, key, silent);
  });

  test("an expired key goes to the first waiter, no matter which waiter notices it", async () => {
    const { store, elapse } = subject();
    const [key, first, second] = [newKey(), newId(), newId()];
    const listener = listen(store, first);
    await acquire(store, key, newId(), { lockTimeMs: CLAIM_TIME_MS });
    await queued(store, key, first);
    await queued(store, key, second);
    await elapse(CLAIM_TIME_MS);
    const reply = await enqueue(store, key, second);
    assert.ok(!reply.acquired);
    assert.equal(reply.holder, reservedFor(first));
    await listener.woken;
    await acquiredInTurn(store, key, first);
    listener.unsubscribe();
  });

  test("a waiter that does not ask again in time loses its position, and the others keep theirs", async () => {
    const { store, elapse } = subject();
    const [key, holder, silent, alive, third] = [newKey(), newId(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    for (const one of [silent, alive, third]) await queued(store, key, one);
    for (let n = 0; n < 6; n += 1) {
      await elapse(TICKET_TIME_MS / 6);
      for (const one of [third, alive]) await queued(store, key, one);
    }
    await queued(store, key, silent); // It is in the queue again, behind the others.
    await release(store, key, holder);
    await queued(store, key, silent);
    let last = holder;
    for (const one of [alive, third, silent]) {
      await release(store, key, last);
      last = await acquiredInTurn(store, key, one);
    }
    await release(store, key, last);
    assert.ok(await isForgotten(store, key));
  });

  test("dead waiters leave nothing behind", async () => {
    const { store, elapse } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder);
    for (let n = 0; n < 5; n += 1) await queued(store, key, newId());
    await elapse(TICKET_TIME_MS);
    assert.deepEqual(await release(store, key, holder), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("dequeue() removes the waiter, and the others keep their positions", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    for (let n = 0; n < 2; n += 1) await queueOf(store).dequeue(key, first, TIMEOUT_MS);
    await release(store, key, holder);
    const last = await acquiredInTurn(store, key, second);
    await release(store, key, last);
    assert.ok(await isForgotten(store, key));
  });

  test("dequeue() of a waiter with a reservation wakes the next waiter, and the last one frees the key", async () => {
    const { store } = subject();
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    const listener = listen(store, second);
    await acquire(store, key, holder);
    await queued(store, key, first);
    await queued(store, key, second);
    await release(store, key, holder);
    for (let n = 0; n < 2; n += 1) await queueOf(store).dequeue(key, first, TIMEOUT_MS);
    await listener.woken;
    assert.equal(await peek(store, key), reservedFor(second));
    await queueOf(store).dequeue(key, second, TIMEOUT_MS);
    assert.ok(await isForgotten(store, key));
    listener.unsubscribe();
  });

  test("dequeue() changes no hold, not even one that the waiter acquired", async () => {
    const { store } = subject();
    const [key, holder, waiting] = [newKey(), newId(), newId()];
    await queueOf(store).dequeue(key, waiting, TIMEOUT_MS);
    await acquire(store, key, holder);
    await queueOf(store).dequeue(key, waiting, TIMEOUT_MS);
    await queueOf(store).dequeue(key, holder, TIMEOUT_MS);
    assert.equal(await peek(store, key), holder);
    await queued(store, key, waiting);
    await release(store, key, holder);
    const requestId = await acquiredInTurn(store, key, waiting);
    await queueOf(store).dequeue(key, waiting, TIMEOUT_MS);
    assert.equal(await peek(store, key), requestId);
    assert.deepEqual(await release(store, key, requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  // ---- twice, late, and in another order --------------------------------------------------------------

  test("enqueue() that acquired the key and runs again reports its own requestId, and joins no queue", async () => {
    const { store } = subject();
    const [key, waiting, requestId] = [newKey(), newId(), newId()];
    assert.deepEqual(await enqueue(store, key, waiting, {}, requestId), TAKEN);
    const again = await enqueue(store, key, waiting, { lockTimeMs: 2 * LONG_MS }, requestId);
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    await assertTimeLeft(store, key, { atMost: LONG_MS });
    await release(store, key, requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("enqueue() that used its reservation and runs again reports its own requestId", async () => {
    const { store } = subject();
    const [key, holder, waiting, requestId] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await queued(store, key, waiting);
    await release(store, key, holder);
    assert.deepEqual(await enqueue(store, key, waiting, {}, requestId), TAKEN);
    const again = await enqueue(store, key, waiting, {}, requestId);
    assert.ok(!again.acquired);
    assert.equal(again.holder, requestId);
    await release(store, key, requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("enqueue() that runs again after its hold ended leaves at most a ticket, which expires", async () => {
    const { store, elapse } = subject();
    const [key, waiting, requestId, holder] = [newKey(), newId(), newId(), newId()];
    await enqueue(store, key, waiting, {}, requestId);
    await release(store, key, requestId);
    await acquire(store, key, holder);
    const late = await enqueue(store, key, waiting, {}, requestId);
    assert.ok(!late.acquired);
    assert.equal(late.holder, holder);
    await elapse(TICKET_TIME_MS);
    await release(store, key, holder);
    assert.ok(await isForgotten(store, key));
  });

  test("dequeue() that overtakes its enqueue() costs the others at most the claim time", async () => {
    const { store, elapse } = subject();
    const [key, holder, gone, waiting] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, holder);
    await queueOf(store).dequeue(key, gone, TIMEOUT_MS);
    await queued(store, key, gone);
    await queued(store, key, waiting);
    await release(store, key, holder);
    await queued(store, key, waiting);
    await elapse(CLAIM_TIME_MS);
    await acquiredInTurn(store, key, waiting);
  });

  test("dequeue() that overtook its enqueue() removes the ticket when it is sent again", async () => {
    const { store } = subject();
    const [key, holder, gone] = [newKey(), newId(), newId()];
    await acquire(store, key, holder);
    await queueOf(store).dequeue(key, gone, TIMEOUT_MS);
    await queued(store, key, gone);
    await queueOf(store).dequeue(key, gone, TIMEOUT_MS);
    await release(store, key, holder);
    assert.ok(await isForgotten(store, key));
  });

  test("nobody acquires a closed key, not even the first waiter", async () => {
    const { store } = subject();
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    await acquire(store, key, requestId);
    await close(store, key, requestId, LONG_MS);
    await queued(store, key, waiting);
    assert.ok(!(await enqueue(store, key, waiting)).acquired);
    assert.equal(await peek(store, key), closedAfter(requestId));
  });
}
