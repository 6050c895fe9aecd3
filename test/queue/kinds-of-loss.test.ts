import test from "ava";
import { deadlinePassed, lossOf, unconfirmed } from "../../runtime/queue/loss";
import { reservedFor, revokedFrom } from "../../runtime/stores/value";

const ID = "0123456789abcdef0123456789abcdef";

test("a key that is missing after its lock time counts as expired, and the loss is not early", (t) => {
  t.deepEqual(lossOf(ID, undefined, false), {
    outcome: "expired",
    because: "its key expired",
    isEarly: false,
  });
});

test("a key that is missing before its lock time ends counts as deleted, and the loss is early", (t) => {
  const { because, ...loss } = lossOf(ID, undefined, true);
  t.deepEqual(loss, { outcome: "deleted", isEarly: true });
  t.regex(because, /^its key disappeared early: it was deleted, evicted, or lost/);
});

for (const isBeforeItsTime of [true, false]) {
  const when = isBeforeItsTime ? "before" : "after";
  test(`a key that another caller holds ${when} the lock time ends counts as stolen, and the loss is ${isBeforeItsTime ? "" : "not "}early`, (t) => {
    const stolen = { outcome: "stolen", isEarly: isBeforeItsTime } as const;
    const next = reservedFor("0".repeat(32));
    t.deepEqual(lossOf(ID, "another", isBeforeItsTime), { ...stolen, because: "another caller holds it" });
    t.deepEqual(lossOf(ID, next, isBeforeItsTime), {
      ...stolen,
      because: "the store reserved its key for a waiter",
    });
  });
}

test("a revocation of the process's own hold is not an early loss, but one of another hold is", (t) => {
  t.like(lossOf(ID, revokedFrom(ID), true), { outcome: "revoked", isEarly: false });
  t.like(lossOf(ID, revokedFrom("f".repeat(32)), true), { outcome: "stolen", isEarly: true });
});

test("a passed deadline is not an early loss and names the error of the renewal", (t) => {
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

test("a hold without a reply from the store has an unknown outcome and is not an early loss", (t) => {
  const error = new Error("no route");
  t.deepEqual(unconfirmed(error), { outcome: "unknown", because: "no route", isEarly: false, cause: error });
});
