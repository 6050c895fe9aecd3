import test from "ava";
import { LockMisconfiguredError } from "../../../runtime";
import { storeContract } from "../../../runtime/stores/contract";
import { drop, listen, newId, place, take, TAKEN } from "../../../runtime/stores/contract/subject";
import type { AcquireRequest } from "../../../runtime/stores/port";
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

// ---- five masters, and what becomes of some -----------------------------------------------------------

const TIMEOUT_MS = 1_000;
const ALL = [0, 1, 2, 3, 4];
/** A key whose gate is the first master. */
const KEY = ALL.map((n) => `LOCK_${n}`).find((key) => inOrder(key, ALL)[0] === 0) ?? "";

interface Five {
  readonly clock: VirtualClock;
  readonly store: QuorumStore;
  readonly members: readonly NotedMember[];
  /** Which master was sent what since the last look, in order: "0 take". */
  sent(): string[];
  /** What each has for the key. */
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
/** It is carried out at once, and the reply takes so long. */
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

test("the gate is asked first, then the others at once; and it is told last that a hold is over", async (t) => {
  const { store, sent } = five();
  const requestId = newId();
  t.deepEqual(await take(store, KEY, requestId), TAKEN);
  t.deepEqual(sent(), ["0 take", "1 take", "2 take", "3 take", "4 take"]);
  t.deepEqual(await drop(store, KEY, requestId), { released: true });
  t.deepEqual(sent(), ["1 drop", "2 drop", "3 drop", "4 drop", "0 drop"]);
});

test("who is refused by the gate asks nobody else, and who waits asks nobody but the gate", async (t) => {
  const { store, sent } = five();
  await take(store, KEY, newId());
  sent();
  t.false((await take(store, KEY, newId())).acquired);
  for (let n = 0; n < 3; n += 1) t.false((await place(store, KEY, newId())).acquired);
  t.deepEqual(sent(), ["0 take", "0 place", "0 place", "0 place"]);
});

test("a minority is given back at once, the gate last, and who has the majority is told", async (t) => {
  const { store, members, sent, values } = five();
  const other = newId();
  for (const n of [2, 3, 4]) await take(members[n]?.inside ?? store, KEY, other);
  const reply = await take(store, KEY, newId());
  t.deepEqual(reply, { acquired: false, holder: other, freeInMs: undefined });
  t.deepEqual(sent(), ["0 take", "1 take", "2 take", "3 take", "4 take", "1 drop", "0 drop"]);
  t.deepEqual(await values(), [undefined, undefined, other, other, other]);
});

test("where several asked at once and nobody has a majority, who has none tries again soon", async (t) => {
  const { store, members } = five();
  for (const n of [1, 2]) await take(members[n]?.inside ?? store, KEY, "a".repeat(32));
  for (const n of [3]) await take(members[n]?.inside ?? store, KEY, "b".repeat(32));
  const reply = await take(store, KEY, newId());
  t.true(!reply.acquired && reply.freeInMs !== undefined && reply.freeInMs < 100, JSON.stringify(reply));
});

test("where the gate is dead the next master is the gate, also for those who wait", async (t) => {
  const { store, members, sent } = five();
  strike(members, refused, 0);
  const [holder, waiting] = [newId(), newId()];
  t.true((await take(store, KEY, holder)).acquired);
  sent();
  t.false((await place(store, KEY, waiting)).acquired);
  t.deepEqual(sent(), ["1 place"]);
  const ear = listen(store, waiting);
  t.deepEqual(await drop(store, KEY, holder), { released: true });
  await ear.heard;
  t.true((await place(store, KEY, waiting)).acquired);
});

test("a gate that hangs costs a quarter of the time once, and is asked again when it answers", async (t) => {
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
  t.is(sent()[0], "1 take");
  moveOn();
  strike(members, well, 0);
  await clock.settle();
  t.deepEqual(await store.release({ key, requestId: another }, TIMEOUT_MS), { released: true });
  await clock.settle();
  sent();
  t.true((await store.acquire(within(60_000), TIMEOUT_MS)).acquired);
  t.is(sent()[0], "0 take");
});

test("a grant that comes after its hold was given up is given back, also where the give-back came before it", async (t) => {
  const { clock, store, members, values } = five();
  strike(members, refused, 1, 2);
  let arrive = (): void => {};
  const arrives = new Promise<void>((resolve) => (arrive = resolve));
  let commands = 0;
  strike(members, async (send) => await ((commands += 1) === 1 ? arrives.then(send) : send()), 3);
  const refusal = t.throwsAsync(store.acquire(within(60_000), TIMEOUT_MS), {
    message: /3 of 5 masters must agree, and 2 did/,
  });
  await clock.advance(TIMEOUT_MS);
  await refusal;
  t.is(commands, 2, "it was given back there, too");
  arrive();
  await clock.settle();
  t.deepEqual(await values(), FREE);
});

test("what a gate grants while the next one is asked, which refuses, is given back", async (t) => {
  const { clock, store, members, values } = five();
  const other = newId();
  for (const n of [1, 2, 3, 4]) await take(members[n]?.inside ?? store, KEY, other);
  strike(members, late(clock, TIMEOUT_MS / 4 + 10), 0);
  strike(members, late(clock, 50), 1);
  const taken = store.acquire(within(60_000), TIMEOUT_MS);
  await clock.advance(TIMEOUT_MS);
  t.like(await taken, { acquired: false, holder: other });
  t.deepEqual(await values(), [undefined, other, other, other, other]);
});

test("a hold whose gate breaks off after its time is ended there, too, when it is back", async (t) => {
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
  await take(store, "LOCK_other", newId());
  await clock.settle();
  t.deepEqual(await values(), FREE);
});

test("a gate that was cut off when the key was closed keeps it closed for no longer, once it is back", async (t) => {
  const { clock, store, members, values } = five();
  const { key, requestId, ...rest } = within(60_000);
  t.true((await store.acquire({ key, requestId, ...rest }, TIMEOUT_MS)).acquired);
  strike(members, refused, 0);
  t.deepEqual(await store.release({ key, requestId, cooldownMs: 10_000 }, TIMEOUT_MS), { released: true });
  await clock.advance(8_000);
  strike(members, well, 0);
  await take(store, "LOCK_other", newId());
  await clock.advance(2_000);
  t.deepEqual(await values(), FREE);
  t.deepEqual(await store.acquire(within(60_000), TIMEOUT_MS), TAKEN);
});

test("who is to come next and asks for too long a lock time does not keep the hold before from its end", async (t) => {
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

test("drops that a master refuses are not sent to it again upon each other's refusal", async (t) => {
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
  t.is(sent().filter((line) => line === "4 drop").length, 2);
});

test("what was given up is never renewed, whatever the masters have for it", async (t) => {
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

test("what masters have, but nobody was told to hold yet, is not renewed: it may still be given back", async (t) => {
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

test("what is given back while its fencing token is drawn is never said to be taken", async (t) => {
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

test("a master that was dead when a hold was taken has it once it was renewed, and so others may die", async (t) => {
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
  await take(store, KEY, newId());
  await clock.settle();
  t.false((await values()).includes(requestId), "what a master did not hear of is told it again");
});

test("a hold that is revoked while those who lacked it are about to take it is renewed no more", async (t) => {
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
  // Whoever revokes it does not reach the two that have it beside the gate, and has a majority of the others.
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

test("a master that was restarted has the holds that are renewed by the time when it counts again", async (t) => {
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

test("a master that was started a short time ago does not count before the longest lock time is over", async (t) => {
  const { clock, store, members } = five(60_000);
  for (const n of [0, 1, 2]) Object.assign(members[n] ?? {}, { startedAtMs: clock.now() });
  await t.throwsAsync(store.acquire(within(60_000), TIMEOUT_MS), {
    message: /and 2 did .*it started a short time ago/,
  });
  await clock.advance(60_000);
  t.true((await store.acquire(within(60_000), TIMEOUT_MS)).acquired);
});

test("one whose start cannot be known never counts: a majority does without, and says what to do where there is none", async (t) => {
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

test("a lock time that is longer than the longest is refused", async (t) => {
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

test("where fewer have it at its end than to prove that it was held all the time, that is not said", async (t) => {
  const { clock, store, members } = five();
  strike(members, refused, 3, 4);
  const request = within(60_000);
  const { key, requestId } = request;
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  strike(members, well, 3, 4);
  // Two lose it, and two get it by a command of which nobody has heard.
  for (const n of [0, 1]) await members[n]?.inside.release({ key, requestId }, 1);
  for (const n of [3, 4]) await members[n]?.inside.acquire(request, 1);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("who had it before its time was over, and was not heard of since, does not prove that it was held", async (t) => {
  const { clock, store, members } = five();
  strike(members, refused, 3, 4);
  const request = within(200);
  const { key, requestId } = request;
  t.true((await store.acquire(request, TIMEOUT_MS)).acquired);
  for (const n of [0, 1, 2]) await members[n]?.inside.renew([{ ...request, lockTimeMs: 60_000 }], 1);
  await members[3]?.inside.acquire({ ...request, lockTimeMs: 60_000 }, 1);
  await clock.advance(300);
  // Its time is over, and the first one's word is missing when a majority confirms it anew.
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

test("masters that take it when its time was over already do not prove that it was held", async (t) => {
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
  t.deepEqual(await taken, { acquired: true, mayComeAgain: true });
  strike(members, well, ...ALL);
  t.deepEqual(await values(), [undefined, requestId, requestId, requestId, requestId]);
  const ended = t.throwsAsync(store.release({ key, requestId }, TIMEOUT_MS), {
    message: /may have lost the key in the meantime/,
  });
  await clock.advance(TIMEOUT_MS);
  await ended;
});

test("what is confirmed by few, and when its time is over, is not put at the masters that lack it", async (t) => {
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

test("what was lost while the machine was suspended is not brought back to life by its renewals", async (t) => {
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

test("what was confirmed only after its own time was over is sure again, and so is its end", async (t) => {
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
  t.deepEqual(new Set(await values()), new Set([request.requestId]), "and it is put at masters that lack it");
  const { key, requestId } = request;
  t.deepEqual(await store.release({ key, requestId }, TIMEOUT_MS), { released: true });
});

test("a master that hangs is sent a few commands a second, however many are asked for", async (t) => {
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

test("nothing of it is left to wait for, and it closes its masters", async (t) => {
  const { clock, store } = five();
  const requestId = newId();
  await take(store, KEY, requestId);
  await drop(store, KEY, requestId);
  t.is(clock.pendingTimers, 0);
  await t.notThrowsAsync(store.close());
});
