import test from "ava";
import { startRedis } from "../support/redis-server";
import { beliefsIn, complaintsIn, hungCallsIn, unprovenIn, type Entry, type History } from "./history";
import { leftoversIn } from "./leftovers";

function history(entries: readonly Entry[], killedAt?: number): History {
  return { name: "process 1", entries, killedAt };
}

const ENTERED: Entry = { event: "entered", call: 1, at: 10, keys: ["LOCK_a"], room: 1, fencingToken: 7 };
const SURE: Entry = { event: "sure", call: 1, at: 20, until: 50 };

/** Returns when the only belief begins and ends. */
function timesOf(entries: readonly Entry[], killedAt?: number): readonly [number, number] | undefined {
  const [belief] = beliefsIn(history(entries, killedAt));
  return belief && [belief.from, belief.to];
}

test("a belief lasts from the entry until the caller leaves", (t) => {
  t.deepEqual(timesOf([ENTERED, SURE, { event: "left", call: 1, at: 30 }]), [10, 30]);
});

test("a belief ends at its deadline if the caller stays longer", (t) => {
  t.deepEqual(timesOf([ENTERED, SURE]), [10, 50]);
  t.deepEqual(timesOf([ENTERED, SURE, { event: "left", call: 1, at: 60 }]), [10, 50]);
});

test("a check that passes after the deadline extends the belief", (t) => {
  t.deepEqual(timesOf([ENTERED, SURE, { event: "sure", call: 1, at: 70, until: 70 }]), [10, 70]);
});

test("a belief in a lost lock ends at the last check that passed", (t) => {
  t.deepEqual(timesOf([ENTERED, SURE, { event: "lost", call: 1, at: 40 }]), [10, 20]);
});

test("a committed guard prolongs the belief beyond its deadline and beyond a loss", (t) => {
  const committed: Entry = { event: "committed", call: 1, at: 80 };
  t.deepEqual(timesOf([ENTERED, SURE, committed]), [10, 80]);
  t.deepEqual(timesOf([ENTERED, SURE, { event: "lost", call: 1, at: 40 }, committed]), [10, 80]);
  t.deepEqual(
    timesOf([ENTERED, { ...committed, at: 15 }, SURE, { event: "left", call: 1, at: 30 }]),
    [10, 30],
  );
});

test("a belief ends when the process is killed", (t) => {
  t.deepEqual(timesOf([ENTERED, SURE], 25), [10, 25]);
});

test("a call for several keys has a belief for each of them", (t) => {
  const beliefs = beliefsIn(history([{ ...ENTERED, keys: ["LOCK_a", "LOCK_b"] }, SURE]));
  t.deepEqual(
    beliefs.map(({ key, id }) => `${key}: ${id}`),
    ["LOCK_a: process 1, call 1", "LOCK_b: process 1, call 1"],
  );
});

const HELD: Entry = { event: "sure", call: 1, at: 20, until: 50, hold: "x" };
const GRANTED: Entry = { event: "proven", at: 9, hold: "x", sureUntil: 50, until: 52 };
const RENEWED: Entry = { event: "proven", at: 30, hold: "x", sureUntil: 80, until: 82 };

test("a renewal of its hold extends the belief of a caller that holds the key alone", (t) => {
  t.deepEqual(timesOf([GRANTED, ENTERED, HELD]), [10, 50]);
  t.deepEqual(timesOf([GRANTED, ENTERED, HELD, RENEWED]), [10, 80]);
  t.deepEqual(timesOf([GRANTED, ENTERED, HELD, { ...RENEWED, hold: "y" }]), [10, 50]);
  t.deepEqual(timesOf([GRANTED, { ...ENTERED, room: 3 }, HELD, RENEWED]), [10, 50]);
  t.deepEqual(timesOf([GRANTED, ENTERED, HELD, RENEWED, { event: "lost", call: 1, at: 40 }]), [10, 20]);
});

test("a check that passes after the last proven deadline is a violation, and a renewal moves that deadline", (t) => {
  const late: Entry = { ...HELD, at: 60, until: 70 };
  const kindsIn = (...entries: Entry[]): string[] =>
    unprovenIn(history(entries)).map(({ kind, at, key }) => `${kind} at ${at} in ${key}`);
  t.deepEqual(kindsIn(GRANTED, ENTERED, HELD), []);
  t.deepEqual(kindsIn(GRANTED, ENTERED, HELD, late), ["unproven at 60 in LOCK_a"]);
  t.deepEqual(kindsIn(GRANTED, ENTERED, HELD, RENEWED, late), []);
  t.deepEqual(kindsIn(GRANTED, ENTERED, HELD, { ...RENEWED, hold: "y" }, late), ["unproven at 60 in LOCK_a"]);
  t.deepEqual(kindsIn(ENTERED, HELD), ["unproven at 20 in LOCK_a"]);
});

const CALLED: Entry = { event: "called", call: 1, at: 0, what: "LOCK_a" };

test("a call that never ends is reported unless its process was killed", (t) => {
  t.deepEqual(hungCallsIn(history([CALLED])), ["process 1, call 1 never ended: LOCK_a"]);
  t.deepEqual(hungCallsIn(history([CALLED], 5)), []);
  t.deepEqual(hungCallsIn(history([CALLED, { event: "ended", call: 1, at: 1, with: "success" }])), []);
});

test("unhandled rejections and unexpected errors are reported, and errors that faults cause are not", (t) => {
  const end = (how: string): Entry => ({ event: "ended", call: 1, at: 1, with: how });
  t.deepEqual(complaintsIn(history([end("LOCK_LOST"), end("LOCK_UNREACHABLE"), end("success")])), []);
  t.deepEqual(complaintsIn(history([end("TypeError: no"), { event: "complaint", at: 2, text: "oops" }])), [
    "process 1, call 1 ended with TypeError: no",
    "process 1 did not handle: oops",
  ]);
});

test("keys that would remain longer than allowed are reported", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const client = server.client();
  await client.set("LOCK_good", "held", "PX", 1_000);
  await client.set("lockweave:1:fence:{LOCK_good}", "1", "PX", 3_601_000);
  t.deepEqual(await leftoversIn(client), []);
  await client.set("LOCK_long", "held", "PX", 600_000);
  await client.set("LOCK_forever", "held");
  await client.set("lockweave:1:fence:{LOCK_long}", "1", "PX", 9_000_000);
  const found = await leftoversIn(client);
  t.deepEqual(found.map((problem) => problem.replace(/ stays.*/, "")).toSorted(), [
    "LOCK_forever",
    "LOCK_long",
    "lockweave:1:fence:{LOCK_long}",
  ]);
});
