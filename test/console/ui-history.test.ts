import test from "ava";
import type { LockRow } from "../../transformer/console/snapshot";
import { History } from "../../transformer/console/ui/history";

// The history of the last hour in `ui`.

const MINUTE_MS = 60_000;
const START = Date.UTC(2030, 0, 1, 12);

function lock(key: string, waiting: number, more: Partial<LockRow> = {}): LockRow {
  return {
    key,
    state: "held",
    holders: [],
    waiting,
    queued: waiting,
    waiters: [],
    seenForMs: 0,
    masters: 1,
    ...more,
  };
}

function holder(storeValue: string, number?: string): LockRow["holders"][number] {
  return {
    storeValue,
    process: number === undefined ? undefined : { number },
    leftMs: 1,
    isRevoked: false,
    guardedBy: undefined,
  };
}

test("the heat map keeps the largest number of waiters in each minute, for an hour", (t) => {
  const history = new History();
  history.add([lock("a", 3)], START);
  history.add([lock("a", 7)], START + 1_000);
  history.add([lock("a", 2)], START + 2 * MINUTE_MS);
  const [row] = history.heat(10, START + 2 * MINUTE_MS);
  t.deepEqual(row?.cells.slice(-3), [7, 0, 2]);
  history.add([], START + 60 * MINUTE_MS);
  t.deepEqual(history.heat(10, START + 60 * MINUTE_MS)[0]?.cells.slice(0, 2), [0, 2]);
  history.add([], START + 62 * MINUTE_MS);
  t.deepEqual(history.heat(10, START + 62 * MINUTE_MS), []);
});

test("the heat map lists the most contended locks first, and none without waiters", (t) => {
  const history = new History();
  history.add([lock("a", 1), lock("b", 5), lock("c", 0)], START);
  t.deepEqual(
    history.heat(10, START).map(({ key }) => key),
    ["b", "a"],
  );
  t.is(history.heat(1, START).length, 1);
});

test("a hold lasts from its announced start to the first scan that does not find it", (t) => {
  const history = new History();
  const held = { ...holder("a".repeat(32), "aaa"), site: "Order.pay", forMs: 4_000 };
  history.add([lock("k", 0, { holders: [held] })], START);
  history.add([lock("k", 0, { holders: [{ ...held, forMs: 4_600 }] })], START + 500);
  t.deepEqual(history.line("k"), [
    { what: "holds", who: { number: "aaa" }, site: "Order.pay", from: START - 4_000 },
  ]);
  history.add([], START + 1_000);
  t.is(history.line("k")[0]?.to, START + 1_000);
});

test("a hold stays the same hold when it is revoked, and the next holder has a new one", (t) => {
  const history = new History();
  const id = "0123456789abcdef".repeat(2);
  history.add([lock("k", 0, { holders: [holder(id)] })], START);
  history.add([lock("k", 0, { holders: [holder(`revoked:${id.slice(8)}`)] })], START + 500);
  t.is(history.line("k").length, 1);
  history.add([lock("k", 0, { holders: [holder("theirs")] })], START + 1_000);
  t.deepEqual(
    history.line("k").map(({ who, to }) => [who, to]),
    [
      [id, START + 1_000],
      ["theirs", undefined],
    ],
  );
});

test("a revoked hold still shows the process that held it", (t) => {
  const history = new History();
  const id = "0123456789abcdef".repeat(2);
  history.add([lock("k", 0, { holders: [holder(id, "aaa")] })], START);
  history.add([lock("k", 0, { holders: [holder(`revoked:${id.slice(8)}`)] })], START + 500);
  t.deepEqual(history.line("k"), [{ what: "holds", who: { number: "aaa" }, from: START }]);
});

test("the history keeps the locks that it already has if there are more than it can keep", (t) => {
  const history = new History();
  const all = Array.from({ length: 700 }, (_, index) =>
    lock(`k${index}`, 0, { holders: [holder(`${index}`)] }),
  );
  for (const at of [START, START + 500, START + 1_000]) history.add(all, at);
  t.is(history.line("k0")[0]?.from, START);
  t.is(history.line("k499")[0]?.from, START);
  t.deepEqual(history.line("k699"), []);
});

test("the history forgets a wait that ended more than an hour ago", (t) => {
  const history = new History();
  history.add([lock("k", 1, { waiters: [{ number: "bbb", calls: 1 }] })], START);
  history.add([], START + 1_000);
  t.is(history.line("k").length, 1);
  history.add([], START + 61 * MINUTE_MS + 1_001);
  t.deepEqual(history.line("k"), []);
});

test("the history keeps contended locks and the latest holds if there are very many", (t) => {
  const history = new History();
  const contended = lock("contended", 1, { waiters: [{ number: "bbb", calls: 1 }] });
  history.add([contended], START);
  for (let round = 0; round < 1_000; round += 1) {
    const held = [holder(`${round}`)];
    history.add(
      [lock(`brief ${round}`, 0, { holders: held }), lock("busy", 1, { holders: held })],
      START + round,
    );
  }
  t.is(history.line("contended").length, 1);
  t.is(history.line("brief 0").length, 0);
  t.is(history.line("brief 999").length, 1);
  const busy = history.line("busy");
  t.true(busy.length <= 201);
  t.is(busy.at(-1)?.who, "999");
});
