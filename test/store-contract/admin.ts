import assert from "node:assert/strict";
import type { InspectedHold, ReleaseReply, ReleaseRequest, Store } from "../../runtime/stores/port";
import { isHeldBy, isRevokedFrom, reservedFor } from "../../runtime/stores/value";
import {
  acquire,
  adminOf,
  close,
  ifHas,
  isForgotten,
  isHolding,
  LONG_MS,
  newId,
  newKey,
  peek,
  placing,
  queued,
  queueOf,
  release,
  renew,
  SHORT_MS,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
  type RegisterTest,
  type Subject,
} from "./subject";

const READS = { permits: Infinity };
const TWO = { permits: 2 };

/** Registers the tests of the commands for people, for exclusive holds. */
export function administration(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "admin");
  const inQueue = ifHas(given, subject, "admin", "queue");

  test("a revoked hold cannot be renewed, and keeps the key until its holder releases it", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id);
    assert.equal(await revoke(store, { key, requestId: id }), true);
    assert.ok(isRevokedFrom(id, String(await peek(store, key))), "the value of the key");
    assert.deepEqual(await renew(store, key, id, LONG_MS), {
      renewed: false,
      holder: await peek(store, key),
    });
    assert.equal((await acquire(store, key, newId())).acquired, false);
    assert.deepEqual(await release(store, key, id), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("a revoked hold expires at its deadline", async () => {
    const { store, elapse } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id, { lockTimeMs: SHORT_MS });
    await revoke(store, { key, requestId: id });
    await elapse(SHORT_MS);
    assert.ok(await isForgotten(store, key));
  });

  test("revoke() that runs twice revokes once, and the second reply is the same", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id);
    const twice = [1, 2].map(() => revoke(store, { key, requestId: id }));
    assert.deepEqual(await Promise.all(twice), [true, true]);
    await release(store, key, id);
    assert.equal(await revoke(store, { key, requestId: id }), false);
    assert.ok(await isForgotten(store, key));
  });

  test("revoke() does not revoke the hold of another request, and does nothing to a free key", async () => {
    const { store } = subject();
    const [key, holder] = [newKey(), newId()];
    assert.equal(await revoke(store, { key, requestId: newId() }), false);
    await acquire(store, key, holder);
    assert.equal(await revoke(store, { key, requestId: newId() }), false);
    assert.equal(await peek(store, key), holder);
    assert.deepEqual(await renew(store, key, holder, LONG_MS), { renewed: true });
  });

  test("acquire() that runs again after the revocation does not restore the hold", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id);
    await revoke(store, { key, requestId: id });
    const again = await acquire(store, key, id);
    assert.ok(!again.acquired && !isHeldBy(id, again.holder));
    await release(store, key, id);
    assert.ok(await isForgotten(store, key));
  });

  inQueue("a revoked hold goes to the first waiter when its holder releases it", async () => {
    const { store } = subject();
    const [key, id, waiting] = [newKey(), newId(), newId()];
    await acquire(store, key, id);
    await revoke(store, { key, requestId: id });
    await queued(store, key, waiting);
    assert.deepEqual(await release(store, key, id), { released: true });
    await release(store, key, await acquiredInTurn(store, key, waiting));
    assert.ok(await isForgotten(store, key));
  });

  inQueue("a revoked hold is handed off like any other", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id);
    await revoke(store, { key, requestId: id });
    const next = placing(key, newId());
    assert.deepEqual(await queueOf(store).releaseAndEnqueue({ key, requestId: id }, next, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    assert.equal(await peek(store, key), next.requestId);
  });

  test("a revoked hold can be released with a cooldown", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id);
    await revoke(store, { key, requestId: id });
    assert.deepEqual(await close(store, key, id, LONG_MS), { released: true });
    assert.match(String(await peek(store, key)), /^closed:/);
  });

  test("a forced release ends any hold or cooldown of the key, by its value", async () => {
    const { store } = subject();
    const [key, held, revoked, closed] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, held);
    assert.deepEqual(await free(store, key, held), { released: true });
    await acquire(store, key, revoked);
    await revoke(store, { key, requestId: revoked });
    assert.equal((await free(store, key, newId())).released, false, "another value");
    const value = String(await peek(store, key));
    assert.equal(await revoke(store, { key, requestId: value }), true, "again, by its value");
    assert.deepEqual(await free(store, key, value), { released: true });
    await acquire(store, key, closed);
    await close(store, key, closed, LONG_MS);
    assert.deepEqual(await free(store, key, String(await peek(store, key))), { released: true });
    assert.ok(await isForgotten(store, key));
  });

  test("inspect() reports the value of a key, and the time that it has left if the store knows it", async () => {
    const { store } = subject();
    const [key, id] = [newKey(), newId()];
    assert.deepEqual(await inspected(store, key), []);
    await acquire(store, key, id);
    assert.deepEqual(await inspected(store, key), [id]);
    await release(store, key, id);
    assert.deepEqual(await inspected(store, key), []);
  });

  inQueue("inspect() reports the number of waiters if the store knows it, and a reservation", async () => {
    const { store } = subject();
    const [key, id, waiter] = [newKey(), newId(), newId()];
    const waiting = async (): Promise<number | undefined> =>
      (await adminOf(store).inspect(key, TIMEOUT_MS)).waiting;
    await acquire(store, key, id);
    const knows = (await waiting()) !== undefined;
    await queued(store, key, waiter);
    assert.equal(await waiting(), knows ? 1 : undefined);
    await release(store, key, id);
    assert.deepEqual(await inspected(store, key), [reservedFor(waiter)]);
    assert.equal(await waiting(), knows ? 0 : undefined);
  });

  test("an announcement is not a lock, and can be repeated", async () => {
    const { store } = subject();
    const processNumber = newId().slice(0, 12);
    for (let n = 0; n < 2; n += 1)
      await adminOf(store).announce({ processNumber, about: "{}", forMs: SHORT_MS }, TIMEOUT_MS);
  });

  test("the latest announcement of a process can be read, if the store supports that", async () => {
    const admin = adminOf(subject().store);
    const [processNumber, another] = [newId().slice(0, 12), newId().slice(0, 12)];
    for (const about of [`{"pid":1}`, `{"pid":2}`])
      await admin.announce({ processNumber, about, forMs: LONG_MS }, TIMEOUT_MS);
    if (admin.announced === undefined) return;
    assert.equal(await admin.announced(processNumber, TIMEOUT_MS), `{"pid":2}`);
    assert.equal(await admin.announced(another, TIMEOUT_MS), undefined);
  });
}

/** Registers the same tests for shared holds. */
export function administrationOfShares(given: RegisterTest, subject: () => Subject): void {
  const test = ifHas(given, subject, "admin");

  test("a revoked shared hold keeps its permit until its holder releases it", async () => {
    const { store } = subject();
    const [key, one, other, third] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, one, TWO);
    await acquire(store, key, other, TWO);
    for (const _ of ["once", "twice"]) {
      assert.equal(await revoke(store, { key, requestId: one }), true);
    }
    assert.ok(!(await isHolding(store, key, one)) && (await isHolding(store, key, other)));
    const renewed = await renew(store, key, one, LONG_MS);
    assert.ok(renewed !== undefined && "holder" in renewed && isRevokedFrom(one, renewed.holder));
    assert.deepEqual(await renew(store, key, other, LONG_MS), { renewed: true });
    for (const id of [third, one]) assert.equal((await acquire(store, key, id, TWO)).acquired, false);
    assert.deepEqual(await release(store, key, one), { released: true });
    assert.deepEqual(await acquire(store, key, third, TWO), TAKEN);
    assert.equal(await revoke(store, { key, requestId: one }), false);
    await release(store, key, other);
    await release(store, key, third);
    assert.ok(await isForgotten(store, key));
  });

  test("inspect() reports each hold of a shared key", async () => {
    const { store } = subject();
    const [key, one, other] = [newKey(), newId(), newId()];
    await acquire(store, key, one, READS);
    await acquire(store, key, other, { ...READS, lockTimeMs: LONG_MS / 2 });
    assert.deepEqual(await inspected(store, key), [one, other].toSorted());
    const { holds } = await adminOf(store).inspect(key, TIMEOUT_MS);
    const isShort = ({ leftMs = LONG_MS }: InspectedHold): boolean => leftMs <= LONG_MS / 2 + 1;
    const short = holds.filter(isShort).map(({ value }) => value);
    assert.ok(holds.some(({ leftMs }) => leftMs === undefined) || short.join() === other);
    await release(store, key, one);
    await release(store, key, other);
    assert.ok(await isForgotten(store, key));
  });
}

function revoke(store: Store, request: ReleaseRequest): Promise<boolean> {
  return adminOf(store).revoke(request, TIMEOUT_MS);
}

/** Releases by force what has this value. */
function free(store: Store, key: string, value: string): Promise<ReleaseReply> {
  return store.release({ key, requestId: value, isForced: true }, TIMEOUT_MS);
}

/** Returns the values that `inspect()` reports, in order. Asserts that their times are possible. */
async function inspected(store: Store, key: string): Promise<readonly string[]> {
  const { holds } = await adminOf(store).inspect(key, TIMEOUT_MS);
  for (const { leftMs = 1 } of holds) assert.ok(leftMs > 0 && leftMs <= LONG_MS + 1, `${leftMs} ms`);
  return holds.map(({ value }) => value).toSorted();
}
