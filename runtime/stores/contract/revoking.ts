import assert from "node:assert/strict";
import type { ReleaseRequest, Store } from "../port";
import { isHeldBy, isRevokedFrom } from "../value";
import {
  close,
  drop,
  isHolding,
  isForgotten,
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
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

const TWO = { permits: 2 };

/** A hold that is revoked, alone. */
export function revoking(test: RegisterTest, subject: () => Subject): void {
  testOf(
    "a hold that is revoked is renewed no more, and keeps the key until its holder drops it",
    async (own, revoke) => {
      const [key, id, waits] = [newKey(), newId(), newId()];
      await take(own, key, id);
      assert.equal(await revoke({ key, requestId: id }), true);
      assert.ok(isRevokedFrom(id, String(await look(own, key))), "what the key holds");
      assert.deepEqual(await renew(own, key, id, LONG_MS), {
        renewed: false,
        holder: await look(own, key),
      });
      assert.equal((await take(own, key, newId())).acquired, false);
      await queued(own, key, waits);
      assert.deepEqual(await drop(own, key, id), { released: true });
      await drop(own, key, await takenInTurn(own, key, waits));
      assert.ok(await isForgotten(own, key));
    },
  );

  testOf("a hold that is revoked ends at its time", async (own, revoke, elapse) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id, { lockTimeMs: SHORT_MS });
    await revoke({ key, requestId: id });
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(own, key));
  });

  testOf("a revocation that is carried out twice revokes once, and tells the same", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id);
    const twice = [1, 2].map(() => revoke({ key, requestId: id }));
    assert.deepEqual(await Promise.all(twice), [true, true]);
    await drop(own, key, id);
    assert.equal(await revoke({ key, requestId: id }), false);
    assert.ok(await isForgotten(own, key));
  });

  testOf("what another holds is not revoked, nor a key that is free", async (own, revoke) => {
    const [key, holder] = [newKey(), newId()];
    assert.equal(await revoke({ key, requestId: newId() }), false);
    await take(own, key, holder);
    assert.equal(await revoke({ key, requestId: newId() }), false);
    assert.equal(await look(own, key), holder);
    assert.deepEqual(await renew(own, key, holder, LONG_MS), { renewed: true });
  });

  testOf("a take that comes again after its hold was revoked brings nothing back", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id);
    await revoke({ key, requestId: id });
    const again = await take(own, key, id);
    assert.ok(!again.acquired && !isHeldBy(id, again.holder));
    await drop(own, key, id);
    assert.ok(await isForgotten(own, key));
  });

  testOf("a hold that is revoked is handed on, or closed, like every other", async (own, revoke) => {
    const [key, id, closed] = [newKey(), newId(), newKey()];
    await take(own, key, id);
    await revoke({ key, requestId: id });
    const next = placing(key, newId());
    assert.deepEqual(await own.releaseAndEnqueue({ key, requestId: id }, next, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    assert.equal(await look(own, key), next.requestId);
    await take(own, closed, id);
    await revoke({ key: closed, requestId: id });
    assert.deepEqual(await close(own, closed, id, LONG_MS), { released: true });
    assert.match(String(await look(own, closed)), /^closed:/);
  });

  testOf("many that are dropped together, where the store can, may be revoked", async (own, revoke) => {
    if (own.releaseMany === undefined) return;
    const ids = [newId(), newId(), newId()];
    const holds = ids.map((requestId) => ({ key: newKey(), requestId }));
    for (const { key, requestId } of holds) await take(own, key, requestId);
    const [first, second] = holds;
    assert.ok(first !== undefined && second !== undefined);
    await queued(own, second.key, newId());
    for (const hold of [first, second]) await revoke(hold);
    const replies = await own.releaseMany(holds, TIMEOUT_MS);
    assert.deepEqual(
      replies,
      holds.map(() => ({ released: true })),
    );
    assert.ok(await isForgotten(own, first.key));
    assert.match(String(await look(own, second.key)), /^reserved:/);
  });

  function testOf(
    title: string,
    run: (own: Store, revoke: Revoke, elapse: Subject["elapse"]) => Promise<void>,
  ): void {
    test(title, async () => {
      const tested = subject();
      const revoke = revokeOf(tested.store);
      if (revoke !== undefined) await run(tested.store, revoke, (ms) => tested.elapse(ms));
    });
  }
}

/** One of several holds of a key. */
export function revokingShares(test: RegisterTest, subject: () => Subject): void {
  test("of those who hold a key together one is revoked, and has its place until it leaves", async () => {
    const { store } = subject();
    const revoke = revokeOf(store);
    if (revoke === undefined) return;
    const [key, one, other, third] = [newKey(), newId(), newId(), newId()];
    await take(store, key, one, TWO);
    await take(store, key, other, TWO);
    for (const _ of ["once", "twice"]) {
      assert.equal(await revoke({ key, requestId: one }), true);
    }
    assert.ok(!(await isHolding(store, key, one)) && (await isHolding(store, key, other)));
    const renewed = await renew(store, key, one, LONG_MS);
    assert.ok(renewed !== undefined && "holder" in renewed && isRevokedFrom(one, renewed.holder));
    assert.deepEqual(await renew(store, key, other, LONG_MS), { renewed: true });
    for (const id of [third, one]) assert.equal((await take(store, key, id, TWO)).acquired, false);
    assert.deepEqual(await drop(store, key, one), { released: true });
    assert.deepEqual(await take(store, key, third, TWO), TAKEN);
    assert.equal(await revoke({ key, requestId: one }), false);
    await drop(store, key, other);
    await drop(store, key, third);
    assert.ok(await isForgotten(store, key));
  });
}

type Revoke = (request: ReleaseRequest) => Promise<boolean>;

function revokeOf(store: Store): Revoke | undefined {
  const { revoke } = store;
  return revoke && ((request) => revoke.call(store, request, TIMEOUT_MS));
}
