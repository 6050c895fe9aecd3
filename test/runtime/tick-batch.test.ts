import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { partsOf, TickBatch } from "../../runtime/base/tick-batch";

test("sends the items of one turn together, in no caller's async context", async (t) => {
  const context = new AsyncLocalStorage<string>();
  const sent: [readonly number[], string | undefined][] = [];
  const batch = new TickBatch<number>((items) => void sent.push([items, context.getStore()]));
  context.run("one caller", () => batch.add(1));
  context.run("another caller", () => batch.add(2));
  t.deepEqual(sent, []);
  await nextTurn();
  t.deepEqual(sent, [[[1, 2], undefined]]);
  context.run("a third caller", () => {
    t.is(batch.add(3), 1);
    batch.flush();
  });
  t.deepEqual(sent.at(-1), [[3], undefined]);
  await nextTurn();
  t.is(sent.length, 2, "an empty batch is not sent");
});

test("an item can be removed until it is sent", async (t) => {
  const sent: (readonly string[])[] = [];
  const batch = new TickBatch<string>((items) => void sent.push(items));
  batch.add("one");
  batch.add("other");
  t.true(batch.remove("one"));
  t.false(batch.remove("one"));
  await nextTurn();
  t.deepEqual(sent, [["other"]]);
  t.false(batch.remove("other"));
});

test("an urgent batch is sent in the next promise job, and any other batch in the next tick", async (t) => {
  const sent: string[] = [];
  const batch = new TickBatch<string>((items) => void sent.push(...items));
  batch.add("soon", true);
  await Promise.resolve();
  t.deepEqual(sent, ["soon"]);
  batch.add("later");
  await Promise.resolve();
  t.deepEqual(sent, ["soon"]);
  await nextTurn();
  t.deepEqual(sent, ["soon", "later"]);
});

test("partsOf() splits a list into parts of a given size", (t) => {
  t.deepEqual(partsOf([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
  t.deepEqual(partsOf([1, 2], 2), [[1, 2]]);
  t.deepEqual(partsOf([1, 2], Infinity), [[1, 2]]);
});
