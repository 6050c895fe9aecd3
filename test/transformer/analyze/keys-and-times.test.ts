import test from "ava";
import { found, messages } from "./analyzed";

const two = (one: string, other: string): Record<string, string> => ({
  "one.ts": `type Id = string & { readonly brand: unique symbol };
interface Order { id: string; nr: number; isPaid: boolean; maybe?: number }
/** @redisLock ${one} */
export async function a(text: string, nr: number, is: boolean, order: Order, id: Id): Promise<void> { void [text, nr, is, order, id]; }
/** @redisLock ${other} */
export async function b(text: string, nr: number, is: boolean, order: Order, id: Id): Promise<void> { void [text, nr, is, order, id]; }`,
});

const NEVER_MEET: readonly (readonly [string, string])[] = [
  ["businessFlag=pay keyName=text", "businessFlag=pay keyName=text,nr"],
  ["businessFlag=pay keyName=text", "businessFlag=pay"],
  ["businessFlag=pay keyName=nr", "businessFlag=pay keyName=is"],
  ["businessFlag=pay keyName=order.nr", "businessFlag=pay keyName=order.isPaid"],
  ["businessFlag=pay keyName=text,nr each=true", "businessFlag=pay keyName=text,nr"],
];

for (const [one, other] of NEVER_MEET) {
  test(`keys that can never be equal are reported: ${one} and ${other}`, (t) => {
    t.deepEqual(found(two(one, other)), ["LW1505 @redisLock"]);
  });
}

const MEET: readonly (readonly [string, string])[] = [
  ["businessFlag=pay keyName=text", "businessFlag=pay keyName=nr"],
  ["businessFlag=pay keyName=text", "businessFlag=pay keyName=order.id"],
  ["businessFlag=pay keyName=nr", "businessFlag=pay keyName=order.maybe"],
  ["businessFlag=pay keyName=id", "businessFlag=pay keyName=nr"],
  ["businessFlag=pay keyName=text,nr each=true", "businessFlag=pay keyName=text"],
  ["businessFlag=pay keyName=text", "businessFlag=other keyName=text,nr"],
  ["businessFlag=pay keyName=text", "businessFlag=pay keyName=text,nr store=other"],
  ['businessFlag=pay keyName="nr + 1"', "businessFlag=pay keyName=is"],
];

for (const [one, other] of MEET) {
  test(`keys that may be equal are not reported: ${one} and ${other}`, (t) => {
    t.deepEqual(found(two(one, other)), []);
  });
}

test("the message describes the parts of both keys", (t) => {
  t.deepEqual(messages(two("businessFlag=pay keyName=text", "businessFlag=pay keyName=text,nr")), [
    "The keys of `pay` here and at `a` can never be the same, so the two locks do not exclude each other: " +
      "2 parts (text, number) here, one part (text) there. Fix: make them the same, or give one of them another `businessFlag`.",
  ]);
});

const SIMILAR: readonly (readonly [string, string])[] = [
  ["payOrder", "payorder"],
  ["payOrder", "pay-order"],
  ["payOrder", "payOder"],
  ["payOrder", "payOrdre"],
  ["quota", "qouta"],
];

for (const [one, other] of SIMILAR) {
  test(`flags that look alike are reported: ${one} and ${other}`, (t) => {
    t.deepEqual(found(two(`businessFlag=${one}`, `businessFlag=${other}`)), ["LW1506 @redisLock"]);
  });
}

const DIFFERENT: readonly (readonly [string, string])[] = [
  ["order", "orders"],
  ["shard1", "shard2"],
  ["account1", "account12"],
  ["debit", "debut"],
  ["form", "from"],
  ["pay", "payOrder"],
  ["import", "export"],
];

for (const [one, other] of DIFFERENT) {
  test(`flags that are clearly different are not reported: ${one} and ${other}`, (t) => {
    t.deepEqual(found(two(`businessFlag=${one}`, `businessFlag=${other}`)), []);
  });
}

test("similar flags that are used several times each are not reported", (t) => {
  const files = two("businessFlag=payOrder", "businessFlag=payorder");
  const text = files["one.ts"] ?? "";
  const twice = text
    .split("\n")
    .slice(2)
    .join("\n")
    .replace("function a(", "function c(")
    .replace("function b(", "function d(");
  t.deepEqual(found({ "one.ts": `${text}\n${twice}` }), []);
});

const inside = (outer: string, inner: string): Record<string, string> => ({
  "one.ts": `/** @redisLock businessFlag=outer ${outer} */
export async function outer(): Promise<void> { await inner(); }
/** @redisLock businessFlag=inner ${inner} */
export async function inner(): Promise<void> {}`,
});

test("a lock that may end while its body waits for an inner lock is reported", (t) => {
  t.deepEqual(found(inside("lockTime=10s watchdog=false", "")), ["LW1504 @redisLock"]);
  t.deepEqual(found(inside("holdAtMost=5s lockTime=5s", "waitTime=5s retryTimes=1")), ["LW1504 @redisLock"]);
  t.deepEqual(messages(inside("lockTime=10s watchdog=false", "waitTime=20s retryTimes=1")), [
    "The lock of `outer` ends after 10 s (`lockTime`), but its body may wait 20 s for the lock of `inner`: " +
      "`outer` calls `inner` (one.ts:2). Fix: give `inner` a shorter wait, or `outer` more time.",
  ]);
});

test("the whole wait budget of an inner lock counts, and may be endless", (t) => {
  const ends = "lockTime=10s watchdog=false";
  t.deepEqual(found(inside(ends, "wait=9s")), []);
  t.deepEqual(found(inside(ends, "wait=0")), []);
  t.deepEqual(found(inside(ends, "wait=10s")), ["LW1504 @redisLock"]);
  t.regex(
    messages(inside(ends, "wait=forever"))[0] ?? "",
    /its body may wait forever for the lock of `inner`/,
  );
  t.deepEqual(found(inside("lockTime=10s", "wait=forever")), []);
});

test("a time that is known only at the call causes no finding", (t) => {
  const ends = "lockTime=10s watchdog=false";
  t.deepEqual(found(inside(ends, 'wait="${20}s"')), []);
  t.deepEqual(found(inside(ends, 'retryTimes="${1}" waitTime=20s')), []);
  t.deepEqual(found(inside('lockTime="${1}s" watchdog=false', "wait=20s")), []);
  t.deepEqual(found(inside('holdAtMost="${1}s" lockTime=1s', "wait=20s")), []);
});

test("a lock that is renewed, or lasts as long as the wait for an inner lock, is not reported", (t) => {
  t.deepEqual(found(inside("lockTime=10s", "")), []);
  t.deepEqual(found(inside("lockTime=20s watchdog=false", "")), []);
  t.deepEqual(found(inside("lockTime=10s watchdog=false", "retryTimes=1")), []);
  t.deepEqual(found(inside("holdAtMost=1m", "")), []);
});
