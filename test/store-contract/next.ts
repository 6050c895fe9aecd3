import assert from "node:assert/strict";
import { CLAIM_TIME_MS, TICKET_TIME_MS } from "../../runtime/stores/port";
import { reservedFor } from "../../runtime/stores/value";
import {
  assertTimeLeft,
  release,
  ifHas,
  isForgotten,
  listen,
  LONG_MS,
  peek,
  newId,
  newKey,
  placing,
  queued,
  queueOf,
  renew,
  SHORT_MS,
  acquire,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/**
 * Registers the tests of `releaseAndEnqueue`: a holder releases the key, and the next caller of its process asks for it in the same step.
 */
export function next(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "queue");

  test("if nobody waits, the next caller acquires the key immediately, for its own lock time", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId, { lockTimeMs: CLAIM_TIME_MS });
    const request = placing(key, newId());
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    assert.equal(await peek(store, key), request.requestId);
    await assertTimeLeft(store, key, { above: CLAIM_TIME_MS });
    assert.deepEqual(await renew(store, key, request.requestId, LONG_MS), { renewed: true });
    assert.deepEqual(await release(store, key, request.requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("if others wait, the next caller goes to the end of the queue, and the key is reserved for the first waiter", async () => {
    const { store } = subject();
    const [key, requestId, other] = [newKey(), newId(), newId()];
    const listener = listen(store, other);
    await acquire(store, key, requestId);
    await queued(store, key, other);
    const mine = placing(key, newId());
    const enqueued = { released: true, next: "enqueued" } as const;
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId }, mine, TIMEOUT_MS), enqueued);
    assert.equal(await peek(store, key), reservedFor(other));
    await listener.woken;
    const held = await acquiredInTurn(store, key, other);
    assert.deepEqual(
      await queueOf(store).releaseAndEnqueue({ key, requestId: held }, placing(key, other), TIMEOUT_MS),
      enqueued,
    );
    await acquiredInTurn(store, key, mine.ticket);
    listener.unsubscribe();
  });

  test("a next caller that is already in the queue keeps its position", async () => {
    const { store } = subject();
    const [key, requestId, mine, other] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, requestId);
    await queued(store, key, mine);
    await queued(store, key, other);
    const reply = await queueOf(store).releaseAndEnqueue({ key, requestId }, placing(key, mine), TIMEOUT_MS);
    assert.deepEqual(reply, { released: true, next: TAKEN });
  });

  test("dead waiters do not keep the key from the next caller", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    await queued(store, key, newId());
    await elapse(TICKET_TIME_MS);
    const request = placing(key, newId());
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    await release(store, key, request.requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("if the hold has ended, nothing changes, and the next caller is not enqueued", async () => {
    const { store, elapse } = subject();
    const [key, late, holder] = [newKey(), newId(), newId()];
    await acquire(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    const held = { key, requestId: late };
    assert.deepEqual(await queueOf(store).releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder: undefined,
    });
    await acquire(store, key, holder);
    assert.deepEqual(await queueOf(store).releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder,
    });
    assert.deepEqual(await release(store, key, holder), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("releaseAndEnqueue() that acquired the key and runs again reports its own requestId, and enqueues nobody", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    const request = placing(key, newId());
    await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder: request.requestId,
    });
    await release(store, key, request.requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("releaseAndEnqueue() that enqueued the next caller and runs again changes nothing", async () => {
    const { store } = subject();
    const [key, requestId, other] = [newKey(), newId(), newId()];
    await acquire(store, key, requestId);
    await queued(store, key, other);
    const request = placing(key, newId());
    await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder: reservedFor(other),
    });
    await acquiredInTurn(store, key, other);
  });

  test("releaseAndEnqueue() does nothing after a release() that overtook it", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await acquire(store, key, requestId);
    await release(store, key, requestId);
    assert.deepEqual(
      await queueOf(store).releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS),
      {
        released: false,
        holder: undefined,
      },
    );
    assert.ok(await isForgotten(store, key));
  });
}
