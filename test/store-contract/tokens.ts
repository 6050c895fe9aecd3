import assert from "node:assert/strict";
import { FENCING_STRIDE } from "../../runtime/stores/port";
import {
  ifHas,
  release,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  queueOf,
  renewal,
  request,
  acquire,
  acquiredInTurn,
  TAKEN,
  token,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

/** Registers the tests of fencing tokens. */
export function tokens(test: RegisterTest, subject: () => Subject): void {
  test("fencing tokens rise, and each draw leaves room for a whole stride", async () => {
    const { store } = subject();
    const [key, first, second] = [newKey(), newId(), newId()];
    const drawn = [token(await acquire(store, key, first, { fencing: true }))];
    const again = { ...renewal(key, first), fencing: true };
    drawn.push(token((await store.renew([again], TIMEOUT_MS))[0]));
    await release(store, key, first);
    drawn.push(token(await acquire(store, key, second, { fencing: true })));
    assertRising(drawn);
  });

  ifHas(
    test,
    subject,
    "queue",
  )(
    "fencing tokens rise however the key is acquired, and each draw leaves room for a whole stride",
    async () => {
      const { store } = subject();
      const [key, first, third, waiting] = [newKey(), newId(), newId(), newId()];
      const fencing = { fencing: true };
      const drawn = [token(await enqueue(store, key, newId(), fencing, first))];
      const second = placing(key, newId(), fencing);
      const handedOff = await queueOf(store).releaseAndEnqueue({ key, requestId: first }, second, TIMEOUT_MS);
      assert.ok(handedOff.released && typeof handedOff.next === "object");
      drawn.push(token(handedOff.next));
      const again = { ...renewal(key, second.requestId), fencing: true };
      const renewed = async (): Promise<number> => token((await store.renew([again], TIMEOUT_MS))[0]);
      drawn.push(await renewed(), await renewed());
      await queued(store, key, waiting);
      await release(store, key, second.requestId);
      drawn.push(token(await enqueue(store, key, waiting, fencing, third)));
      await release(store, key, third);
      drawn.push(token(await acquire(store, key, newId(), fencing)));
      assertRising(drawn);
    },
  );

  test("a request without fencing gets no token", async () => {
    const { store } = subject();
    const [key, requestId] = [newKey(), newId()];
    assert.deepEqual(await acquire(store, key, requestId), TAKEN);
    assert.deepEqual(await store.renew([renewal(key, requestId)], TIMEOUT_MS), [{ renewed: true }]);
  });

  ifHas(
    test,
    subject,
    "queue",
  )("a waiter without fencing gets no token", async () => {
    const { store } = subject();
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    assert.deepEqual(await enqueue(store, key, newId(), {}, requestId), TAKEN);
    await queued(store, key, waiting);
    await release(store, key, requestId);
    await acquiredInTurn(store, key, waiting);
  });

  test("a request that is not granted draws no token", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    await acquire(store, key, holder, { fencing: true });
    for (const reply of [
      await acquire(store, key, newId(), { fencing: true }),
      await acquire(store, key, holder, { fencing: true }),
      ...(store.queue === undefined ? [] : [await enqueue(store, key, newId(), { fencing: true })]),
      (await store.renew([{ ...renewal(key, newId()), fencing: true }], TIMEOUT_MS))[0],
    ]) {
      assert.ok(reply !== undefined && !("fencingToken" in reply), JSON.stringify(reply));
    }
  });

  test("only the renewals that ask for a token get one", async () => {
    const { store } = subject();
    const holds = Array.from({ length: 4 }, () => ({ key: newKey(), requestId: newId() }));
    for (const { key, requestId } of holds) await acquire(store, key, requestId);
    const replies = await store.renew(
      holds.map(({ key, requestId }, index) => request(key, requestId, { fencing: index % 2 === 1 })),
      TIMEOUT_MS,
    );
    replies.forEach((reply, index) => {
      if (index % 2 === 1) assert.ok(Number.isSafeInteger(token(reply)));
      else assert.deepEqual(reply, { renewed: true });
    });
  });
}

function assertRising(drawn: readonly number[]): void {
  for (const [index, later] of drawn.slice(1).entries()) {
    assert.ok(later >= (drawn[index] ?? 0) + FENCING_STRIDE, drawn.join(", "));
  }
  assert.ok(drawn.every(Number.isSafeInteger));
}
