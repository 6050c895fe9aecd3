import test from "ava";
import type { Entry, History } from "./history";
import { longTurnsIn, overtakingIn } from "./order";

const KEY = "LOCK_torture";

function history(name: string, entries: readonly Entry[]): History {
  return { name, entries };
}

function called(
  call: number,
  at: number,
  more: { queue?: string; endsUnheard?: boolean } = { queue: KEY },
): Entry {
  return { event: "called", call, at, what: KEY, ...more };
}

function entered(call: number, at: number): Entry {
  return { event: "entered", call, at, keys: [KEY], room: 1 };
}

test("callers that enter in the order of their calls are no violation, even if one gives up", (t) => {
  const gaveUp: Entry = { event: "ended", call: 2, at: 5, with: "LOCK_WAIT_TIME_OUT" };
  const entries = [called(1, 0), called(2, 1), called(3, 2), entered(1, 3), gaveUp, entered(3, 6)];
  t.deepEqual(overtakingIn(history("process 1", entries)), []);
});

test("a caller that enters before an earlier caller of its process is a violation", (t) => {
  const entries = [called(1, 0), called(2, 1), entered(2, 3), entered(1, 4)];
  t.deepEqual(overtakingIn(history("process 1", entries)), [
    `process 1, call 2 entered ${KEY} before call 1, which had asked earlier`,
  ]);
});

test("a caller that belongs to no queue may overtake and be overtaken", (t) => {
  const entries = [called(1, 0, {}), called(2, 1), entered(2, 3), entered(1, 4)];
  t.deepEqual(overtakingIn(history("process 1", entries)), []);
});

/** A caller of process 1 that waits for five seconds. */
const WAITER = history("process 1", [called(1, 0), entered(1, 5_000)]);

/** Many callers of process 2 that enter one after the other, from this time on. */
function crowd(from: number, count: number, more: { endsUnheard?: boolean } = {}): Entry[] {
  return Array.from({ length: count }, (_, nth) => [
    called(nth, from, { queue: KEY, ...more }),
    entered(nth, from + nth),
  ]).flat();
}

test("a process that enters a lock 65 times in a row while another one waits is a violation", (t) => {
  t.deepEqual(longTurnsIn([WAITER, history("process 2", crowd(2_000, 64))]), []);
  t.deepEqual(longTurnsIn([WAITER, history("process 2", crowd(2_000, 65))]), [
    `process 1, call 1 waited for ${KEY} while process 2 entered it 65 times`,
  ]);
});

test("what another process enters in the first second of a wait does not count", (t) => {
  t.deepEqual(longTurnsIn([WAITER, history("process 2", crowd(900, 150))]), []);
});

test("a third process ends a turn, and so does an earlier waiter of the same process", (t) => {
  const long = history("process 2", [...crowd(2_000, 40), ...crowd(3_000, 40)]);
  t.is(longTurnsIn([WAITER, long]).length, 1);
  const third = history("process 3", [called(1, 0), entered(1, 2_500)]);
  t.deepEqual(longTurnsIn([WAITER, long, third]), []);
  const inFront = history("process 1", [called(2, 0), called(1, 0), entered(2, 2_500), entered(1, 5_000)]);
  t.deepEqual(longTurnsIn([inFront, long]), []);
});

test("calls whose end no waiter hears make no turn", (t) => {
  t.deepEqual(longTurnsIn([WAITER, history("process 2", crowd(2_000, 100, { endsUnheard: true }))]), []);
});
