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

/** Registers the tests of `revoke` for exclusive holds. */
export function revoking(test: RegisterTest, subject: () => Subject): void {
  testOf(
    "a revoked hold cannot be renewed, and keeps the key until its holder releases it",
    async (own, revoke) => {
      const [key, id, waiting] = [newKey(), newId(), newId()];
      await take(own, key, id);
      assert.equal(await revoke({ key, requestId: id }), true);
      assert.ok(isRevokedFrom(id, String(await look(own, key))), "the value of the key");
      assert.deepEqual(await renew(own, key, id, LONG_MS), {
        renewed: false,
        holder: await look(own, key),
      });
      assert.equal((await take(own, key, newId())).acquired, false);
      await queued(own, key, waiting);
      assert.deepEqual(await drop(own, key, id), { released: true });
      await drop(own, key, await takenInTurn(own, key, waiting));
      assert.ok(await isForgotten(own, key));
    },
  );

  testOf("a revoked hold expires at its deadline", async (own, revoke, elapse) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id, { lockTimeMs: SHORT_MS });
    await revoke({ key, requestId: id });
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(own, key));
  });

  testOf("revoke() that runs twice revokes once, and the second reply is the same", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id);
    const twice = [1, 2].map(() => revoke({ key, requestId: id }));
    assert.deepEqual(await Promise.all(twice), [true, true]);
    await drop(own, key, id);
    assert.equal(await revoke({ key, requestId: id }), false);
    assert.ok(await isForgotten(own, key));
  });

  testOf(
    "revoke() does not revoke the hold of another request, and does nothing to a free key",
    async (own, revoke) => {
      const [key, holder] = [newKey(), newId()];
      assert.equal(await revoke({ key, requestId: newId() }), false);
      await take(own, key, holder);
      assert.equal(await revoke({ key, requestId: newId() }), false);
      assert.equal(await look(own, key), holder);
      assert.deepEqual(await renew(own, key, holder, LONG_MS), { renewed: true });
    },
  );

  testOf("acquire() that runs again after the revocation does not restore the hold", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await take(own, key, id);
    await revoke({ key, requestId: id });
    const again = await take(own, key, id);
    assert.ok(!again.acquired && !isHeldBy(id, again.holder));
    await drop(own, key, id);
    assert.ok(await isForgotten(own, key));
  });

  testOf("a revoked hold is handed off or closed like any other", async (own, revoke) => {
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

  testOf("releaseMany(), if the store has it, also ends revoked holds", async (own, revoke) => {
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

/** Registers the tests of `revoke` for shared holds. */
export function revokingShares(test: RegisterTest, subject: () => Subject): void {
  test("a revoked shared hold keeps its permit until its holder releases it", async () => {
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
