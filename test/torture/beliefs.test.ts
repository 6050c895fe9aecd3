import test from "ava";
import { violationsAmong, type Belief } from "./beliefs";

const KEY = "LOCK_torture";

function writer(id: string, from: number, to: number, fencingToken?: number): Belief {
  return { id, key: KEY, from, to, room: 1, fencingToken };
}

function reader(id: string, from: number, to: number, fencingToken?: number): Belief {
  return { id, key: KEY, from, to, room: Infinity, fencingToken };
}

function permit(id: string, from: number, to: number, room = 2): Belief {
  return { id, key: KEY, from, to, room };
}

/** Returns the kinds and times of the violations, in the order of time. */
function kindsIn(...beliefs: Belief[]): string[] {
  return violationsAmong(beliefs).map(({ kind, at }) => `${kind} at ${at}`);
}

test("beliefs in sequence are not a violation, even if one ends as the next one starts", (t) => {
  t.deepEqual(kindsIn(writer("c", 20, 30), writer("a", 0, 10), writer("b", 10, 20)), []);
});

test("two writers at once are a violation", (t) => {
  t.deepEqual(kindsIn(writer("a", 0, 10), writer("b", 9, 20)), ["overlap at 9"]);
});

test("each writer that enters during a longer write is a violation, not only the first", (t) => {
  t.deepEqual(kindsIn(writer("a", 0, 100), writer("b", 10, 20), writer("c", 50, 60)), [
    "overlap at 10",
    "overlap at 50",
  ]);
});

test("two writers of different keys at once are not a violation", (t) => {
  t.deepEqual(kindsIn(writer("a", 0, 10), { ...writer("b", 5, 20), key: "LOCK_other" }), []);
});

test("a belief that ended before it was recorded has no length and is not a violation", (t) => {
  t.deepEqual(kindsIn(writer("a", 0, 10), writer("b", 5, 5), writer("c", 6, 4)), []);
});

test("readers may overlap, and a writer among them is a violation in either order", (t) => {
  t.deepEqual(kindsIn(reader("a", 0, 10), reader("b", 5, 20), reader("c", 6, 9)), []);
  t.deepEqual(kindsIn(reader("a", 0, 10), writer("b", 5, 20)), ["overlap at 5"]);
  t.deepEqual(kindsIn(writer("a", 0, 10), reader("b", 5, 20)), ["overlap at 5"]);
});

test("more holders than permits are a violation", (t) => {
  t.deepEqual(kindsIn(permit("a", 0, 10), permit("b", 5, 20), permit("c", 10, 30)), []);
  t.deepEqual(kindsIn(permit("a", 0, 10), permit("b", 5, 20), permit("c", 9, 30)), ["overlap at 9"]);
});

test("the smaller number of permits counts if holders disagree", (t) => {
  t.deepEqual(kindsIn(permit("a", 0, 10, 3), permit("b", 1, 10, 3), permit("c", 2, 10, 2)), ["overlap at 2"]);
});

test("a fencing token that falls or repeats is a violation, even after a holder without a token", (t) => {
  t.deepEqual(kindsIn(writer("a", 0, 10, 5), writer("b", 10, 20), writer("c", 20, 30, 6)), []);
  t.deepEqual(kindsIn(writer("a", 0, 10, 5), writer("b", 10, 20), writer("c", 20, 30, 4)), ["token at 20"]);
  t.deepEqual(kindsIn(writer("a", 0, 10, 5), writer("b", 11, 20, 5)), ["token at 11"]);
});

test("readers may enter in an order other than that of their tokens", (t) => {
  t.deepEqual(kindsIn(reader("a", 0, 1, 6), reader("b", 2, 3, 5)), []);
});

test("a violation names its holders and the key", (t) => {
  const [{ message, key } = { message: "", key: "" }] = violationsAmong([
    writer("process 1, call 7", 0, 10),
    writer("process 2, call 3", 4, 20),
  ]);
  t.is(key, KEY);
  t.is(
    message,
    "LOCK_torture: process 2, call 3 (4.0 to 20.0) believes that it holds the lock, and so do process 1, call 7 (0.0 to 10.0). The lock has room for 1",
  );
});
