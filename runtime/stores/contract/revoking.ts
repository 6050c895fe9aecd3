import assert from "node:assert/strict";
import type { ReleaseRequest, Store } from "../port";
import { isHeldBy, isRevokedFrom } from "../value";
import {
  close,
  release,
  isHolding,
  isForgotten,
  LONG_MS,
  peek,
  newId,
  newKey,
  placing,
  queued,
  renew,
  SHORT_MS,
  acquire,
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
      await acquire(own, key, id);
      assert.equal(await revoke({ key, requestId: id }), true);
      assert.ok(isRevokedFrom(id, String(await peek(own, key))), "the value of the key");
      assert.deepEqual(await renew(own, key, id, LONG_MS), {
        renewed: false,
        holder: await peek(own, key),
      });
      assert.equal((await acquire(own, key, newId())).acquired, false);
      await queued(own, key, waiting);
      assert.deepEqual(await release(own, key, id), { released: true });
      await release(own, key, await takenInTurn(own, key, waiting));
      assert.ok(await isForgotten(own, key));
    },
  );

  testOf("a revoked hold expires at its deadline", async (own, revoke, elapse) => {
    const [key, id] = [newKey(), newId()];
    await acquire(own, key, id, { lockTimeMs: SHORT_MS });
    await revoke({ key, requestId: id });
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(own, key));
  });

  testOf("revoke() that runs twice revokes once, and the second reply is the same", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await acquire(own, key, id);
    const twice = [1, 2].map(() => revoke({ key, requestId: id }));
    assert.deepEqual(await Promise.all(twice), [true, true]);
    await release(own, key, id);
    assert.equal(await revoke({ key, requestId: id }), false);
    assert.ok(await isForgotten(own, key));
  });

  testOf(
    "revoke() does not revoke the hold of another request, and does nothing to a free key",
    async (own, revoke) => {
      const [key, holder] = [newKey(), newId()];
      assert.equal(await revoke({ key, requestId: newId() }), false);
      await acquire(own, key, holder);
      assert.equal(await revoke({ key, requestId: newId() }), false);
      assert.equal(await peek(own, key), holder);
      assert.deepEqual(await renew(own, key, holder, LONG_MS), { renewed: true });
    },
  );

  testOf("acquire() that runs again after the revocation does not restore the hold", async (own, revoke) => {
    const [key, id] = [newKey(), newId()];
    await acquire(own, key, id);
    await revoke({ key, requestId: id });
    const again = await acquire(own, key, id);
    assert.ok(!again.acquired && !isHeldBy(id, again.holder));
    await release(own, key, id);
    assert.ok(await isForgotten(own, key));
  });

  testOf("a revoked hold is handed off or closed like any other", async (own, revoke) => {
    const [key, id, closed] = [newKey(), newId(), newKey()];
    await acquire(own, key, id);
    await revoke({ key, requestId: id });
    const next = placing(key, newId());
    assert.deepEqual(await own.releaseAndEnqueue({ key, requestId: id }, next, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    assert.equal(await peek(own, key), next.requestId);
    await acquire(own, closed, id);
    await revoke({ key: closed, requestId: id });
    assert.deepEqual(await close(own, closed, id, LONG_MS), { released: true });
    assert.match(String(await peek(own, closed)), /^closed:/);
  });

  testOf("releaseMany(), if the store has it, also ends revoked holds", async (own, revoke) => {
    if (own.releaseMany === undefined) return;
    const ids = [newId(), newId(), newId()];
    const holds = ids.map((requestId) => ({ key: newKey(), requestId }));
    for (const { key, requestId } of holds) await acquire(own, key, requestId);
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
    assert.match(String(await peek(own, second.key)), /^reserved:/);
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
    await acquire(store, key, one, TWO);
    await acquire(store, key, other, TWO);
    for (const _ of ["once", "twice"]) {
      assert.equal(await revoke({ key, requestId: one }), true);
    }
    assert.ok(!(await isHolding(store, key, one)) && (await isHolding(store, key, other)));
    const renewed = await renew(store, key, one, LONG_MS);
    assert.ok(renewed !== undefined && "holder" in renewed && isRevokedFrom(one, renewed.holder));
    assert.deepEqual(await renew(store, key, other, LONG_MS), { renewed: true });
    for (const id of [third, one]) assert.equal((await acquire(store, key, id, TWO)).acquired, false);
    assert.deepEqual(await release(store, key, one), { released: true });
    assert.deepEqual(await acquire(store, key, third, TWO), TAKEN);
    assert.equal(await revoke({ key, requestId: one }), false);
    await release(store, key, other);
    await release(store, key, third);
    assert.ok(await isForgotten(store, key));
  });
}

type Revoke = (request: ReleaseRequest) => Promise<boolean>;

function revokeOf(store: Store): Revoke | undefined {
  const { revoke } = store;
  return revoke && ((request) => revoke.call(store, request, TIMEOUT_MS));
}
