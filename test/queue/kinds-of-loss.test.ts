import test from "ava";
import { deadlinePassed, lossOf, unconfirmed } from "../../runtime/queue/loss";
import { reservedFor, revokedFrom } from "../../runtime/stores/value";

const ID = "0123456789abcdef0123456789abcdef";

test("a key that is gone after its time has expired, and that is not early", (t) => {
  t.deepEqual(lossOf(ID, undefined, false), {
    outcome: "expired",
    because: "its key expired",
    isEarly: false,
  });
});

test("a key that is gone before its time was deleted, and that is early", (t) => {
  const { because, ...loss } = lossOf(ID, undefined, true);
  t.deepEqual(loss, { outcome: "deleted", isEarly: true });
  t.regex(because, /^its key disappeared early: it was deleted, evicted, or lost/);
});

for (const isBeforeItsTime of [true, false]) {
  const when = isBeforeItsTime ? "before" : "after";
  test(`a key of somebody else ${when} its time is stolen, and ${isBeforeItsTime ? "" : "not "}early`, (t) => {
    const stolen = { outcome: "stolen", isEarly: isBeforeItsTime } as const;
    const next = reservedFor("0".repeat(32));
    t.deepEqual(lossOf(ID, "another", isBeforeItsTime), { ...stolen, because: "somebody else holds it" });
    t.deepEqual(lossOf(ID, next, isBeforeItsTime), {
      ...stolen,
      because: "the store passed it on to a waiter",
    });
  });
}

test("a key that holds the same, revoked, is no loss before its time, and what another one left of its own is", (t) => {
  t.like(lossOf(ID, revokedFrom(ID), true), { outcome: "revoked", isEarly: false });
  t.like(lossOf(ID, revokedFrom("f".repeat(32)), true), { outcome: "stolen", isEarly: true });
});

test("a deadline that passed is no loss before its time, and tells what kept the renewal from it", (t) => {
  const because = "its deadline passed";
  t.deepEqual(deadlinePassed(), { outcome: "expired", because, isEarly: false });
  for (const error of [new Error("no route"), undefined]) {
    const reason = error === undefined ? "undefined" : "no route";
    t.deepEqual(deadlinePassed({ error }), {
      outcome: "expired",
      because: `${because} before a renewal succeeded (${reason})`,
      isEarly: false,
      cause: error,
    });
  }
});

test("a hold that the store tells nothing of is not known to be lost before its time", (t) => {
  const error = new Error("no route");
  t.deepEqual(unconfirmed(error), { outcome: "unknown", because: "no route", isEarly: false, cause: error });
});
