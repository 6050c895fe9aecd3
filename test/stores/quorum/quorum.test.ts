import test from "ava";
import { LockMisconfiguredError } from "../../../runtime";
import { storeContract } from "../../store-contract";
import { release, listen, newId, enqueue, acquire, TAKEN } from "../../store-contract/subject";
import type { AcquireRequest, EnqueueRequest } from "../../../runtime/stores/port";
import { inOrder } from "../../../runtime/stores/quorum/order";
import { QuorumStore } from "../../../runtime/stores/quorum/quorum";
import { revokedFrom } from "../../../runtime/stores/value";
import { but } from "../../simulation/tampering";
import { deferred } from "../../support/deferred";
import { SuspendableClock } from "../../support/suspendable-clock";
import { VirtualClock } from "../../support/virtual-clock";
import { registering } from "../registering";
import { memoryMember } from "./memory-member";
import { NotedMember, type MemberFate } from "./noted-member";

const LONGEST_MS = 86_400_000;

for (const count of [3, 5]) {
  storeContract(registering(test, `of ${count}: `), () => {
    const clock = new VirtualClock();
    const members = Array.from({ length: count }, () => memoryMember(clock));
    return {
      store: new QuorumStore(members, clock, LONGEST_MS),
      canShare: false,
      elapse: (ms) => clock.advance(ms),
      async put(key, requestId, lockTimeMs) {
        for (const { store } of members)
          await store.acquire({ key, requestId, lockTimeMs, fencing: false }, 1);
      },
    };
  });
}

// ---- five masters, some of which fail -----------------------------------------------------------------

const TIMEOUT_MS = 1_000;
const ALL = [0, 1, 2, 3, 4];
/** A key whose gate is the first master. */
const KEY = ALL.map((n) => `LOCK_${n}`).find((key) => inOrder(key, ALL)[0] === 0) ?? "";

interface Five {
  readonly clock: VirtualClock;
  readonly store: QuorumStore;
  readonly members: readonly NotedMember[];
  /** The commands sent since the last call, in order, such as "0 acquire" for the first master. */
  sent(): string[];
  /** The value of the key on each master. */
  values(): Promise<(string | Error | undefined)[]>;
}

function five(longestMs = LONGEST_MS): Five {
  const clock = new VirtualClock();
  const commands: string[] = [];
  const members = ALL.map(
    (n) => new NotedMember(memoryMember(clock), (name) => commands.push(`${n} ${name}`)),
  );
  return {
    clock,
    store: new QuorumStore(members, clock, longestMs),
    members,
    sent: () => commands.splice(0),
    values: async () =>
      await Promise.all(members.map(async ({ inside }) => (await inside.peek([KEY], 1))[0])),
  };
}

const refused: MemberFate = () => Promise.reject(new Error("connect ECONNREFUSED"));
const hung: MemberFate = () => new Promise(() => {});
const well: MemberFate = (send) => send();
const passes = (clock: VirtualClock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.after(ms, resolve);
  });
/** Runs the first command, and refuses all others. */
const onlyOnce = (): MemberFate => {
  let count = 0;
  return (send) => (++count === 1 ? send() : refused(send));
};
/** Runs the command immediately, and delays the reply. */
const late =
  (clock: VirtualClock, ms: number): MemberFate =>
  async (send) => {
    const reply = await send();
    await passes(clock, ms);
    return reply;
  };

function strike(members: readonly NotedMember[], fate: MemberFate, ...which: number[]): void {
  for (const n of which) Object.assign(members[n] ?? {}, { fate });
}

const FREE = [undefined, undefined, undefined, undefined, undefined];
const within = (lockTimeMs: number): AcquireRequest => ({
  key: KEY,
  requestId: newId(),
  lockTimeMs,
  fencing: false,
});

test("a quorum acquires at the gate first and releases at the gate last", async (t) => {
  const { store, sent } = five();
  const requestId = newId();
  t.deepEqual(await acquire(store, KEY, requestId), TAKEN);
  t.deepEqual(sent(), ["0 acquire", "1 acquire", "2 acquire", "3 acquire", "4 acquire"]);
  t.deepEqual(await release(store, KEY, requestId), { released: true });
  t.deepEqual(sent(), ["1 release", "2 release", "3 release", "4 release", "0 release"]);
});

test("a caller that the gate refuses, and a waiter, send commands only to the gate", async (t) => {
  const { store, sent } = five();
  await acquire(store, KEY, newId());
  sent();
  t.false((await acquire(store, KEY, newId())).acquired);
  for (let n = 0; n < 3; n += 1) t.false((await enqueue(store, KEY, newId())).acquired);
  t.deepEqual(sent(), ["0 acquire", "0 enqueue", "0 enqueue", "0 enqueue"]);
});

test("a minority is released immediately, with the gate last, and the reply names the majority holder", async (t) => {
  const { store, members, sent, values } = five();
  const other = newId();
  for (const n of [2, 3, 4]) await acquire(members[n]?.inside ?? store, KEY, other);
  const reply = await acquire(store, KEY, newId());
  t.deepEqual(reply, { acquired: false, holder: other, freeInMs: undefined });
  t.deepEqual(sent(), [
    "0 acquire",
    "1 acquire",
    "2 acquire",
    "3 acquire",
    "4 acquire",
    "1 release",
    "0 release",
  ]);
  t.deepEqual(await values(), [undefined, undefined, other, other, other]);
});

test("a caller retries soon if no concurrent caller has a majority", async (t) => {
  const { store, members } = five();
  for (const n of [1, 2]) await acquire(members[n]?.inside ?? store, KEY, "a".repeat(32));
  for (const n of [3]) await acquire(members[n]?.inside ?? store, KEY, "b".repeat(32));
  const reply = await acquire(store, KEY, newId());
  t.true(!reply.acquired && reply.freeInMs !== undefined && reply.freeInMs < 100, JSON.stringify(reply));
});

test("if the gate is dead, the next master is the gate for new callers and for waiters", async (t) => {
  const { store, members, sent } = five();
  strike(members, refused, 0);
  const [holder, waiting] = [newId(), newId()];
  t.true((await acquire(store, KEY, holder)).acquired);
  sent();
  t.false((await enqueue(store, KEY, waiting)).acquired);
  t.deepEqual(sent(), ["1 enqueue"]);
  const ear = listen(store, waiting);
  t.deepEqual(await release(store, KEY, holder), { released: true });
  await ear.woken;
  t.true((await enqueue(store, KEY, waiting)).acquired);
});

/** The number of waiters for the key at each master. */
async function waitersAt(members: readonly NotedMember[]): Promise<(number | undefined)[]> {
  return await Promise.all(members.map(async ({ inside }) => (await inside.inspect(KEY, 1)).waiting));
}

const waiting = (ticket: string): EnqueueRequest => ({ ...within(60_000), ticket });

/** A holder, and a waiter that is enqueued at the second master, while the first one, its gate, is dead. */
async function waiterAtSecondMaster({
  store,
  members,
}: Five): Promise<{ held: AcquireRequest; ticket: string }> {
  const [held, ticket] = [within(60_000), newId()];
  strike(members, refused, 0);
  await store.acquire(held, TIMEOUT_MS);
  await store.enqueue(waiting(ticket), TIMEOUT_MS);
  return { held, ticket };
}

/** Lets the first master reply again, and get the hold by a renewal. */
async function recoverFirstMaster({ clock, store, members }: Five, held: AcquireRequest): Promise<void> {
  strike(members, well, 0);
  await clock.advance(TIMEOUT_MS);
  await store.renew([held], TIMEOUT_MS);
  await clock.settle();
}

test("a waiter whose gate replies again moves to its queue", async (t) => {
  const all = five();
  const { clock, store, members } = all;
  const { held, ticket } = await waiterAtSecondMaster(all);
  t.deepEqual(await waitersAt(members), [0, 1, 0, 0, 0]);
  await recoverFirstMaster(all, held);
  t.false((await store.enqueue(waiting(ticket), TIMEOUT_MS)).acquired);
  await clock.settle();
  t.deepEqual(await waitersAt(members), [1, 0, 0, 0, 0]);
});

test("a waiter that acquires the key at one gate leaves the queue of an earlier gate", async (t) => {
  const all = five();
  const { clock, store, values } = all;
  const { held, ticket } = await waiterAtSecondMaster(all);
  await recoverFirstMaster(all, held);
  t.deepEqual(await store.release(held, TIMEOUT_MS), { released: true });
  const next = waiting(ticket);
  t.true((await store.enqueue(next, TIMEOUT_MS)).acquired);
  await clock.settle();
  t.deepEqual(await store.release(next, TIMEOUT_MS), { released: true });
  await clock.settle();
  t.deepEqual(await values(), FREE, "no master reserves the key for the waiter that has left");
});

test("a waiter that gives up leaves the queue of a gate that ran its command too late", async (t) => {
  const { clock, store, members } = five();
  await acquire(store, KEY, newId());
  const [ticket, moves] = [newId(), deferred()];
  strike(members, async (send) => await moves.promise.then(send), 0);
  const enqueued = store.enqueue(waiting(ticket), TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS / 4);
  t.false((await enqueued).acquired);
  moves.resolve();
  await clock.settle();
  t.deepEqual(await waitersAt(members), [1, 1, 0, 0, 0]);
  await store.dequeue(KEY, ticket, TIMEOUT_MS);
  t.deepEqual(await waitersAt(members), [0, 0, 0, 0, 0]);
});

test("a waiter leaves the queue of a gate that enqueued it too late, together with a release", async (t) => {
  const { clock, store, members } = five();
  const [held, first, moves] = [within(60_000), newId(), deferred()];
  await store.acquire(held, TIMEOUT_MS);
  await store.enqueue(waiting(first), TIMEOUT_MS);
  strike(members, async (send) => await moves.promise.then(send), 0);
  const next = store.releaseAndEnqueue(held, waiting(newId()), TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS);
  t.deepEqual(await next, { released: true, next: undefined });
  moves.resolve();
  await clock.settle();
  t.deepEqual(await waitersAt(members), [0, 0, 0, 0, 0], "the key is reserved for the first waiter");
});

test("a hanging gate costs only the first command a quarter of its timeout, and is used again after it replies", async (t) => {
  const { clock, store, members, sent } = five();
  let moveOn = (): void => {};
  const moves = new Promise<void>((resolve) => (moveOn = resolve));
  strike(members, async (send) => await moves.then(send), 0);
  const requestId = newId();
  const taken = store.acquire({ ...within(60_000), requestId }, TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS / 4);
  t.true((await taken).acquired);
  const [key, another] = [KEY, newId()];
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
  sent();
  t.true((await store.acquire({ ...within(60_000), requestId: another }, TIMEOUT_MS)).acquired);
  t.is(sent()[0], "1 acquire");
  moveOn();
  strike(members, well, 0);
  await clock.settle();
  t.deepEqual(await store.release({ key, requestId: another }, TIMEOUT_MS), { released: true });
  await clock.settle();
  sent();
  t.true((await store.acquire(within(60_000), TIMEOUT_MS)).acquired);
  t.is(sent()[0], "0 acquire");
});

test("a late grant of a failed acquisition is released, even if the release overtook it", async (t) => {
  const { clock, store, members, values } = five();
  strike(members, refused, 1, 2);
  let arrive = (): void => {};
  const arrives = new Promise<void>((resolve) => (arrive = resolve));
  let commands = 0;
  strike(members, async (send) => await ((commands += 1) === 1 ? arrives.then(send) : send()), 3);
  const refusal = t.throwsAsync(store.acquire(within(60_000), TIMEOUT_MS), {
    message: /only 2 of 5 masters agreed, but 3 must/,
  });
  await clock.advance(TIMEOUT_MS);
  await refusal;
  t.is(commands, 2, "the release was sent to that master as well");
  arrive();
  await clock.settle();
  t.deepEqual(await values(), FREE);
});

test("a late grant of the gate is released if the next master refuses the lock", async (t) => {
  const { clock, store, members, values } = five();
  const other = newId();
  for (const n of [1, 2, 3, 4]) await acquire(members[n]?.inside ?? store, KEY, other);
  strike(members, late(clock, TIMEOUT_MS / 4 + 10), 0);
  strike(members, late(clock, 50), 1);
  const taken = store.acquire(within(60_000), TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS);
  t.like(await taken, { acquired: false, holder: other });
  t.deepEqual(await values(), [undefined, other, other, other, other]);
});

test("a hold is released at a gate that reconnects after the release", async (t) => {
  const { clock, store, members, values } = five();
  const request = within(60_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  let breakOff = (): void => {};
  const breaks = new Promise<never>((_resolve, reject) => (breakOff = () => reject(new Error("ETIMEDOUT"))));
  strike(members, () => breaks, 0);
  const { key, requestId } = request;
  const next = store.releaseAndEnqueue(
    { key, requestId },
    { ...within(60_000), ticket: newId() },
    TIMEOUT_MS,
  );
  await clock.advance(TIMEOUT_MS);
  t.deepEqual(await next, { released: true, next: undefined });
  breakOff();
  await clock.settle();
  strike(members, well, 0);
  await clock.advance(TIMEOUT_MS);
  await acquire(store, "LOCK_other", newId());
  await clock.settle();
  t.deepEqual(await values(), FREE);
});

test("a gate that missed the release does not extend the cooldown of the key", async (t) => {
  const { clock, store, members, values } = five();
  const { key, requestId, ...rest } = within(60_000);
  t.true((await store.acquire({ key, requestId, ...rest }, TIMEOUT_MS)).acquired);
  strike(members, refused, 0);
  t.deepEqual(await store.release({ key, requestId, cooldownMs: 10_000 }, TIMEOUT_MS), { released: true });
  await clock.advance(8_000);
  strike(members, well, 0);
  await acquire(store, "LOCK_other", newId());
  await clock.advance(2_000);
  t.deepEqual(await values(), FREE);
  t.deepEqual(await store.acquire(within(60_000), TIMEOUT_MS), TAKEN);
});

test("releaseAndEnqueue() releases the hold even if the next lock time is too long", async (t) => {
  const { store, values } = five(60_000);
  const request = within(60_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  const { key, requestId } = request;
  const next = await store.releaseAndEnqueue(
    { key, requestId },
    { ...within(60_001), ticket: newId() },
    TIMEOUT_MS,
  );
  t.deepEqual(next, { released: true, next: undefined });
  t.deepEqual(await values(), FREE);
});

test("a release that a master rejects does not make the quorum resend other rejected releases", async (t) => {
  const { clock, store, members, sent } = five();
  const requests = ["LOCK_a", "LOCK_b"].map((key) => Object.assign(within(60_000), { key }));
  for (const request of requests) await store.acquire(request, TIMEOUT_MS);
  let waitMs = 0;
  const refuses: MemberFate = async () => {
    await passes(clock, (waitMs += 1));
    throw new LockMisconfiguredError("NOPERM");
  };
  strike(members, refuses, 4);
  sent();
  const ended = requests.map(({ key, requestId }) => store.release({ key, requestId }, TIMEOUT_MS));
  await clock.advance(TIMEOUT_MS);
  await Promise.all(ended);
  t.is(sent().filter((line) => line === "4 release").length, 2);
});

test("a failed acquisition is never renewed, even if all masters have it", async (t) => {
  const { clock, store, members } = five();
  strike(members, refused, 2, 3, 4);
  const request = within(60_000);
  const refusal = t.throwsAsync(store.acquire(request, TIMEOUT_MS));
  await clock.advance(TIMEOUT_MS);
  await refusal;
  strike(members, well, 2, 3, 4);
  for (const { inside } of members) await inside.acquire(request, TIMEOUT_MS);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: false, holder: undefined }]);
});

test("a hold is not renewed before its acquisition has succeeded", async (t) => {
  const { clock, store, members, values } = five();
  for (const member of members) Object.assign(member, { raiseFence: () => new Promise(() => {}) });
  const request = within(60_000);
  const refusal = t.throwsAsync(store.acquire({ ...request, fencing: true }, TIMEOUT_MS));
  await clock.settle();
  t.is((await values())[0], request.requestId);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: false, holder: undefined }]);
  await clock.advance(TIMEOUT_MS);
  await refusal;
  t.deepEqual(await values(), FREE);
});

test("an acquisition fails if it is released while its fencing token is drawn", async (t) => {
  const { clock, store, members, values } = five();
  const drawn = deferred();
  for (const member of members) Object.assign(member, { raiseFence: () => drawn.promise });
  const request = within(60_000);
  const refusal = t.throwsAsync(store.acquire({ ...request, fencing: true }, TIMEOUT_MS), {
    message: /it was released before it was acquired/,
  });
  await clock.settle();
  const { key, requestId } = request;
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
  drawn.resolve();
  await refusal;
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: false, holder: undefined }]);
  t.deepEqual(await values(), FREE);
});

test("a renewal writes the hold to masters that missed the acquisition, so that others may fail", async (t) => {
  const { clock, store, members, values } = five();
  strike(members, refused, 0, 1);
  const request = within(60_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  strike(members, well, 0, 1);
  await clock.advance(1_000);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
  await clock.settle();
  t.deepEqual(
    await values(),
    ALL.map(() => request.requestId),
  );
  strike(members, refused, 3, 4);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
  const { key, requestId } = request;
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
  strike(members, well, 3, 4);
  await clock.advance(1_000);
  await acquire(store, KEY, newId());
  await clock.settle();
  t.false((await values()).includes(requestId), "a release that a master missed is sent to it again");
});

test("a hold that is revoked while masters still receive it cannot be renewed", async (t) => {
  const { clock, store, members, values } = five();
  const request = within(60_000);
  const { key, requestId } = request;
  strike(members, refused, 3, 4);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  await clock.advance(TIMEOUT_MS);
  strike(members, well, 3, 4);
  const arrives = deferred();
  for (const member of members.slice(3)) {
    const { acquire: takeAt } = member.store;
    member.store.acquire = async (...args) => {
      await arrives.promise;
      return await takeAt(...args);
    };
  }
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
  // The revocation does not reach two masters that have the hold, but has a majority of the others.
  const notHeard = { revoke: () => new Promise<boolean>(() => {}) };
  const cutOff = members.map(({ inside }, n) =>
    Object.assign(memoryMember(clock), { store: n === 1 || n === 2 ? but(inside, notHeard) : inside }),
  );
  const revoked = new QuorumStore(cutOff, clock, LONGEST_MS).revoke({ key, requestId }, TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS);
  t.true(await revoked);
  arrives.resolve();
  await clock.settle();
  t.deepEqual(await values(), [revokedFrom(requestId), requestId, requestId, requestId, requestId]);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: false, holder: revokedFrom(requestId) }]);
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
  t.deepEqual(await values(), FREE);
});

test("a renewal writes the hold to a restarted master before that master votes again", async (t) => {
  const { clock, store, members, values } = five(60_000);
  const request = within(60_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  const { key, requestId } = request;
  await members[1]?.inside.release({ key, requestId }, 1);
  Object.assign(members[1] ?? {}, { startedAtMs: clock.now() });
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
  await clock.settle();
  t.deepEqual(
    await values(),
    ALL.map(() => requestId),
  );
});

test("a restarted master does not vote until the longest lock time has passed", async (t) => {
  const { clock, store, members } = five(60_000);
  for (const n of [0, 1, 2]) Object.assign(members[n] ?? {}, { startedAtMs: clock.now() });
  await t.throwsAsync(store.acquire(within(60_000), TIMEOUT_MS), {
    message: /only 2 of 5 masters agreed.*it started recently/,
  });
  await clock.advance(60_000);
  t.true((await store.acquire(within(60_000), TIMEOUT_MS)).acquired);
});

test("a master with unknown uptime has no vote, and the error names it if there is no majority", async (t) => {
  const { store, members } = five();
  const refusal = new LockMisconfiguredError("its uptime cannot be read");
  for (const n of [0, 1]) Object.assign(members[n] ?? {}, { startedAtMs: refusal });
  const warnings: string[] = [];
  store.listen({ onWakeUp() {}, onReconnect() {}, onWarning: (message) => void warnings.push(message) });
  const request = within(60_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  t.deepEqual(warnings, [
    "master 1 has no vote: its uptime cannot be read",
    "master 2 has no vote: its uptime cannot be read",
  ]);
  Object.assign(members[2] ?? {}, { startedAtMs: refusal });
  const [renewed] = await store.renew([request], TIMEOUT_MS);
  t.true(renewed instanceof LockMisconfiguredError);
  await t.throwsAsync(store.acquire({ ...request, key: "LOCK_other" }, TIMEOUT_MS), {
    instanceOf: LockMisconfiguredError,
    message: /master 3: its uptime cannot be read/,
  });
});

test("an error names the last failure of a master, even if the master was not asked again", async (t) => {
  const { store, members } = five();
  strike(members, refused, 0, 1, 2);
  await t.throwsAsync(store.acquire(within(1_000), TIMEOUT_MS), {
    message: /master 1: connect ECONNREFUSED/,
  });
  await t.throwsAsync(store.admin.inspect(KEY, TIMEOUT_MS), {
    message:
      /only 2 of 5 masters agreed, but 3 must \(master 1: it does not answer\. Its last error: connect ECONNREFUSED; master 2/,
  });
});

test("an error names no master that was not asked", async (t) => {
  const { store, members } = five();
  strike(members, refused, 0, 1, 2);
  await t.throwsAsync(store.acquire(within(1_000), TIMEOUT_MS), {
    message: `only 0 of 5 masters agreed, but 3 must (${[1, 2, 3].map((n) => `master ${n}: connect ECONNREFUSED`).join("; ")})`,
  });
});

test("a lock time above longestLockTime is rejected", async (t) => {
  const { store } = five(60_000);
  await t.throwsAsync(store.acquire(within(60_001), TIMEOUT_MS), {
    instanceOf: LockMisconfiguredError,
    message: /longestLockTime/,
  });
  const request = within(60_000);
  await store.acquire(request, TIMEOUT_MS);
  const [renewed] = await store.renew([{ ...request, lockTimeMs: 60_001 }], TIMEOUT_MS);
  t.true(renewed instanceof LockMisconfiguredError);
});

test("release() reports a possible loss if too few masters kept the hold throughout", async (t) => {
  const { clock, store, members } = five();
  strike(members, refused, 3, 4);
  const request = within(60_000);
  const { key, requestId } = request;
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  strike(members, well, 3, 4);
  // Two masters lose it, and two others get it from a command whose reply was lost.
  for (const n of [0, 1]) await members[n]?.inside.release({ key, requestId }, 1);
  for (const n of [3, 4]) await members[n]?.inside.acquire(request, 1);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("a master without a recent confirmation does not prove that the lock was held", async (t) => {
  const { clock, store, members } = five();
  strike(members, refused, 3, 4);
  const request = within(200);
  const { key, requestId } = request;
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  for (const n of [0, 1, 2]) await members[n]?.inside.renew([{ ...request, lockTimeMs: 60_000 }], 1);
  await members[3]?.inside.acquire({ ...request, lockTimeMs: 60_000 }, 1);
  await clock.advance(300);
  // The lock time has passed, and a majority confirms the hold again without the first master.
  strike(members, refused, 0, 4);
  strike(members, well, 3);
  const longer = { ...request, lockTimeMs: 60_000 };
  t.deepEqual(await store.renew([longer], TIMEOUT_MS), [{ renewed: true }]);
  await members[3]?.inside.release({ key, requestId }, 1);
  strike(members, well, 0, 4);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("a master to which a lost hold came back does not prove that the lock was held", async (t) => {
  const { clock, store, members } = five();
  const request = within(60_000);
  const { key, requestId } = request;
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  await members[0]?.inside.release({ key, requestId }, 1);
  // The renewal finds that the first master lacks the hold. The command that restores it there fails, but runs later.
  strike(members, onlyOnce(), 0);
  t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
  await members[0]?.inside.acquire(request, 1);
  for (const n of [1, 2]) await members[n]?.inside.release({ key, requestId }, 1);
  strike(members, well, 0);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("masters that acquire after the lock time has passed do not prove that the lock was held", async (t) => {
  const { clock, store, members, values } = five();
  const lateToArrive: MemberFate = async (send) => {
    await passes(clock, 210);
    return await send();
  };
  strike(members, lateToArrive, 1, 2, 3, 4);
  const request = within(200);
  const { key, requestId } = request;
  const taken = store.acquire(request, TIMEOUT_MS);
  await clock.advance(210);
  t.deepEqual(await taken, { acquired: true, mayRunAgain: true });
  strike(members, well, ...ALL);
  t.deepEqual(await values(), [undefined, requestId, requestId, requestId, requestId]);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("a late minority confirmation does not write the hold to the other masters", async (t) => {
  const { clock, store, members, values } = five();
  strike(members, refused, 3, 4);
  const request = within(400);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  await clock.advance(380);
  strike(members, late(clock, 20), 0, 1);
  strike(members, refused, 2);
  strike(members, well, 3, 4);
  const renewed = store.renew([request], TIMEOUT_MS);
  await clock.advance(20);
  t.true((await renewed)[0] instanceof Error);
  t.deepEqual((await values()).slice(3), [undefined, undefined]);
});

test("renewals do not restore a lock that expired while the machine was suspended", async (t) => {
  const [clock, clockOfMasters] = [new SuspendableClock(), new VirtualClock()];
  const members = ALL.map(() => new NotedMember(memoryMember(clockOfMasters), () => {}));
  const store = new QuorumStore(members, clock, LONGEST_MS);
  const request = within(30_000);
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  clock.suspend(60_000);
  await clockOfMasters.advance(60_000);
  await clock.advance(100);
  for (const unheard of [[2, 3, 4], [2], []]) {
    strike(members, well, ...ALL);
    strike(members, refused, ...unheard);
    const [renewed] = await store.renew([request], TIMEOUT_MS);
    t.false(renewed !== undefined && !(renewed instanceof Error) && renewed.renewed);
    await clock.advance(100);
  }
  const values = await Promise.all(members.map(async ({ inside }) => (await inside.peek([KEY], 1))[0]));
  t.deepEqual(values, [undefined, undefined, undefined, undefined, undefined]);
});

test("a hold that was confirmed late can be renewed, and its release proves that it was held", async (t) => {
  const { clock, store, members, values } = five();
  strike(members, late(clock, 110), ...ALL);
  const request = within(200);
  const taken = store.acquire(request, TIMEOUT_MS);
  await clock.advance(221);
  t.true((await taken).acquired);
  strike(members, well, ...ALL);
  for (let round = 0; round < 3; round += 1) {
    t.deepEqual(await store.renew([request], TIMEOUT_MS), [{ renewed: true }]);
    await clock.advance(60);
  }
  t.deepEqual(
    new Set(await values()),
    new Set([request.requestId]),
    "the hold is written to masters that lack it",
  );
  const { key, requestId } = request;
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
});

test("a hanging master gets at most a few commands a second", async (t) => {
  const { clock, store, members, sent } = five();
  strike(members, hung, 4);
  await store.acquire(within(60_000), TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS);
  sent();
  for (let n = 0; n < 100; n += 1) {
    await store.acquire({ ...within(60_000), key: `LOCK_${n}` }, TIMEOUT_MS);
    await clock.advance(10);
  }
  t.true(sent().filter((line) => line.startsWith("4 ")).length <= 5);
});

test("a quorum leaves no timer, and closes its masters", async (t) => {
  const { clock, store } = five();
  const requestId = newId();
  await acquire(store, KEY, requestId);
  await release(store, KEY, requestId);
  t.is(clock.pendingTimers, 0);
  await t.notThrowsAsync(store.close());
});
