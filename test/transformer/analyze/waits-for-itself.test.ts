import test from "ava";
import { analyzed, found, messages } from "./analyzed";

const file = (text: string): Record<string, string> => ({ "one.ts": text });

test("a function that reaches itself with the same key waits for itself", (t) => {
  const files = file(`/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<void> { await again(orderNo); }
async function again(nr: string): Promise<void> { await pay(nr); }`);
  t.deepEqual(found(files), ["LW1502 again"]);
  t.deepEqual(messages(files), [
    "`pay` waits for its own lock `pay`: `pay` calls `again` (one.ts:2), which calls `pay` (one.ts:3). " +
      "Fix: write `reentrant=true` at its tag, so that the inner call acquires the lock again.",
  ]);
  t.true(analyzed(files).findings[0]?.isCertain);
});

test("a function that reaches another with the same flag and key waits for itself", (t) => {
  const files = file(`export class Orders {
  id = "1";
  /** @redisLock businessFlag=order keyName=this.id,order.nr */
  async pay(order: { nr: string }): Promise<void> { await this.close(order.nr, 1); }
  /** @redisLock businessFlag=order keyName=this.id,nr */
  async close(nr: string, times: number): Promise<void> { void times; }
}`);
  t.deepEqual(found(files), ["LW1502 close"]);
  t.true(analyzed(files).findings[0]?.isCertain);
  t.regex(messages(files)[0] ?? "", /^`Orders\.pay` waits for its own lock `order`.*at both tags/);
});

test("a function that reaches another with the same whole key waits for itself", (t) => {
  const files = file(`/** @redisLock key="order:\${id}:pay" */
export async function pay(id: string): Promise<void> { await settle(id); }
/** @redisLock key="order:\${nr}:pay" */
export async function settle(nr: string): Promise<void> { void nr; }`);
  t.deepEqual(found(files), ["LW1502 settle"]);
  t.true(analyzed(files).findings[0]?.isCertain);
});

test("a finding about a key that is an expression is not certain", (t) => {
  for (const words of ['businessFlag=order keyName="id + other"', 'key="order:${id + other}"']) {
    const files = file(`/** @redisLock ${words} */
export async function pay(id: string, other: string): Promise<void> { await settle(id); void other; }
const other = "2";
/** @redisLock ${words} */
export async function settle(id: string): Promise<void> { void id; }`);
    t.deepEqual(found(files), ["LW1502 settle"], words);
    t.false(analyzed(files).findings[0]?.isCertain, words);
  }
});

test("a finding about a key that may have another value is not certain", (t) => {
  const files = file(`interface Tree { id: string; children: Tree[] }
/** @redisLock businessFlag=tree keyName=tree.id */
export async function walk(tree: Tree): Promise<void> { for (const one of tree.children) await walk(one); }`);
  t.deepEqual(found(files), ["LW1502 walk"]);
  t.false(analyzed(files).findings[0]?.isCertain);
  t.regex(messages(files)[0] ?? "", /If both locks have the same key, it waits for itself/);
});

test("a finding about a lock with a condition or with permits is not certain", (t) => {
  for (const words of ['when="n > 1"', "permits=5"]) {
    const files = file(`/** @redisLock businessFlag=a ${words} */
export async function a(n: number): Promise<void> { await a(n); }`);
    t.deepEqual(found(files), ["LW1502 a"]);
    t.false(analyzed(files).findings[0]?.isCertain, words);
  }
});

test("a call chain that returns to a lock through another lock is reported once, and not as a lock cycle", (t) => {
  const files = file(`/** @redisLock businessFlag=a */ export async function a(): Promise<void> { await b(); }
/** @redisLock businessFlag=b */ export async function b(): Promise<void> { await a2(); }
/** @redisLock businessFlag=a */ export async function a2(): Promise<void> {}`);
  t.deepEqual(found(files), ["LW1502 b"]);
});

const FINE = {
  "that delegates to another implementation": `interface Stock { reserve(): Promise<void> }
class Plain implements Stock { async reserve(): Promise<void> {} } // lockweave-allow LW1507: of tests
class Counted implements Stock { constructor(readonly inner: Stock) {}
  /** @redisLock businessFlag=a */ async reserve(): Promise<void> { await this.inner.reserve(); } }
void [Plain, Counted];`,
  "that is reentrant": `/** @redisLock businessFlag=a reentrant=true */ export async function a(n: number): Promise<void> { if (n > 0) await a(n - 1); }`,
  "that only reads": `/** @redisLock businessFlag=a mode=read */ export async function a(n: number): Promise<void> { if (n > 0) await a(n - 1); }`,
  "that does not wait": `/** @redisLock businessFlag=a waitTime=0 onFailure=skip */ export async function a(n: number): Promise<void> { if (n > 0) await a(n - 1); }`,
  "that starts itself without waiting for it": `/** @redisLock businessFlag=a */ export async function a(): Promise<void> {
    // lockweave-allow LW1503: it is the next round
    void a();
  }`,
  "that acquires a key with another number of parts": `/** @redisLock businessFlag=a keyName=n */ export async function a(n: number): Promise<void> { await b(n, n); }
/** @redisLock businessFlag=a keyName=n,m */ export async function b(n: number, m: number): Promise<void> { void m; void n; }`,
};

for (const [what, text] of Object.entries(FINE)) {
  test(`a function ${what} does not wait for itself`, (t) => {
    t.deepEqual(
      found(file(text)).filter((one) => !one.startsWith("LW1505")),
      [],
    );
  });
}

test("a function that calls another with the same key waits for itself if only one of them is reentrant", (t) => {
  t.deepEqual(
    found(
      file(`/** @redisLock businessFlag=a */ export async function a(): Promise<void> { await b(); }
/** @redisLock businessFlag=a reentrant=true */ export async function b(): Promise<void> {}`),
    ),
    ["LW1502 b"],
  );
});

test("a reader that acquires its own lock for writing gets a separate message", (t) => {
  const [message] = messages(
    file(`/** @redisLock businessFlag=a mode=read */ export async function a(): Promise<void> { await b(); }
/** @redisLock businessFlag=a */ export async function b(): Promise<void> {}`),
  );
  t.regex(message ?? "", /^`a` .*A reader cannot acquire its own lock for writing/);
});
