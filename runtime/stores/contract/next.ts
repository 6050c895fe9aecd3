import assert from "node:assert/strict";
import { CLAIM_TIME_MS, TICKET_TIME_MS } from "../port";
import { reservedFor } from "../value";
import {
  drop,
  isForgotten,
  listen,
  LONG_MS,
  look,
  newId,
  newKey,
  placing,
  queued,
  renew,
  SHORT_MS,
  take,
  TAKEN,
  takenInTurn,
  timeLeft,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** A hold that ends for another of the same process. */
export function next(test: RegisterTest, subject: () => Subject): void {
  test("where nobody waits, the next takes the key at once, for its own whole lock time", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId, { lockTimeMs: CLAIM_TIME_MS });
    const request = placing(key, newId());
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    assert.equal(await look(store, key), request.requestId);
    assert.ok((await timeLeft(store, key)) > CLAIM_TIME_MS);
    assert.deepEqual(await renew(store, key, request.requestId, LONG_MS), { renewed: true });
    assert.deepEqual(await drop(store, key, request.requestId), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("where others wait, the next goes to the end of the queue, and the key is reserved for the first", async () => {
    const { store } = subject();
    const [key, requestId, other] = [newKey(), newId(), newId()];
    const ear = listen(store, other);
    await take(store, key, requestId);
    await queued(store, key, other);
    const mine = placing(key, newId());
    const placed = { released: true, next: "enqueued" } as const;
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, mine, TIMEOUT_MS), placed);
    assert.equal(await look(store, key), reservedFor(other));
    await ear.heard;
    const held = await takenInTurn(store, key, other);
    assert.deepEqual(
      await store.releaseAndEnqueue({ key, requestId: held }, placing(key, other), TIMEOUT_MS),
      placed,
    );
    await takenInTurn(store, key, mine.ticket);
    ear.deafen();
  });

  test("a next that stands in the queue already keeps its place there", async () => {
    const { store } = subject();
    const [key, requestId, mine, other] = [newKey(), newId(), newId(), newId()];
    await take(store, key, requestId);
    await queued(store, key, mine);
    await queued(store, key, other);
    const reply = await store.releaseAndEnqueue({ key, requestId }, placing(key, mine), TIMEOUT_MS);
    assert.deepEqual(reply, { released: true, next: TAKEN });
  });

  test("those in the queue who died do not keep the key from the next", async () => {
    const { store, elapse } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    await queued(store, key, newId());
    await elapse(TICKET_TIME_MS);
    const request = placing(key, newId());
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    await drop(store, key, request.requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("where the hold is not there any more nothing is done: its next gets no place", async () => {
    const { store, elapse } = subject();
    const [key, late, holder] = [newKey(), newId(), newId()];
    await take(store, key, late, { lockTimeMs: SHORT_MS });
    await elapse(SHORT_MS);
    const held = { key, requestId: late };
    assert.deepEqual(await store.releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder: undefined,
    });
    await take(store, key, holder);
    assert.deepEqual(await store.releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder,
    });
    assert.deepEqual(await drop(store, key, holder), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("a next that took the key finds itself when it is carried out again, and gets no place", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    const request = placing(key, newId());
    await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder: request.requestId,
    });
    await drop(store, key, request.requestId);
    assert.ok(await isForgotten(store, key));
  });

  test("a next that got a place changes nothing when it is carried out again", async () => {
    const { store } = subject();
    const [key, requestId, other] = [newKey(), newId(), newId()];
    await take(store, key, requestId);
    await queued(store, key, other);
    const request = placing(key, newId());
    await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder: reservedFor(other),
    });
    await takenInTurn(store, key, other);
  });

  test("a next that a drop overtook does nothing", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    await take(store, key, requestId);
    await drop(store, key, requestId);
    assert.deepEqual(await store.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder: undefined,
    });
    assert.ok(await isForgotten(store, key));
  });
}
