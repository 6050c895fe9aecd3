import test from "ava";
import { analyzed, found, messages } from "./analyzed";

const ORDER = `import { Stock } from "./stock.js";
export class OrderService {
  constructor(readonly stock: Stock) {}
  /** @redisLock businessFlag=payOrder keyName=orderNo */
  async pay(orderNo: string): Promise<void> {
    await this.stock.reserve(orderNo);
  }
  /** @redisLock businessFlag=payOrder keyName=orderNo */
  async cancel(orderNo: string): Promise<void> {}
}
`;
const STOCK = `import type { OrderService } from "./order.js";
export class Stock {
  orders?: OrderService;
  /** @redisLock businessFlag=stock keyName=item */
  async reserve(item: string): Promise<void> {}
  /** @redisLock businessFlag=stock keyName=item */
  async recall(item: string): Promise<void> {
    await this.orders?.cancel(item);
  }
}
`;

test("two locks that are acquired in both orders are reported, across files and classes", (t) => {
  t.deepEqual(found({ "order.ts": ORDER, "stock.ts": STOCK }), ["LW1501 reserve"]);
  t.deepEqual(messages({ "order.ts": ORDER, "stock.ts": STOCK }), [
    "Callers acquire `payOrder` and `stock` in different orders, so they can wait for each other until their wait budgets end: " +
      "`OrderService.pay` calls `Stock.reserve` (order.ts:6), so `stock` is acquired inside `payOrder`; " +
      "`Stock.recall` calls `OrderService.cancel` (stock.ts:8), so `payOrder` is acquired inside `stock`. " +
      "Fix: acquire them in the same order everywhere.",
  ]);
});

test("locks that are always acquired in the same order are not reported", (t) => {
  t.deepEqual(
    found({ "order.ts": ORDER, "stock.ts": STOCK.replace("await this.orders?.cancel(item);", "") }),
    [],
  );
});

/** A file of tagged functions that acquire each other's locks. `inside` is the body of `b`. */
function both(inside: string, { b = "", more = "" } = {}): Record<string, string> {
  return {
    "both.ts": `/** @redisLock businessFlag=a */
export async function a(): Promise<void> { await b2(); }
/** @redisLock businessFlag=a */
export async function a2(): Promise<void> {}
/** @redisLock businessFlag=b ${b} */
export async function b(): Promise<void> { ${inside} }
/** @redisLock businessFlag=b ${b} */
export async function b2(): Promise<void> {}
${more}`,
  };
}

const ORDERED = {
  "through a helper": ["await help();", "async function help(): Promise<void> { return a2(); }"],
  "through an arrow function": ["await help();", "const help = async (): Promise<void> => a2();"],
  "through a synchronous function that returns the promise": [
    "await help();",
    "function help() { return a2(); }",
  ],
  "in a callback of an array": ["await Promise.all([1].map(() => a2()));", ""],
  "by its name as a callback": ["await Promise.all([1].map(a2));", ""],
  "in a promise's continuation": ["await Promise.resolve().then(() => a2());", ""],
  "in a callback that a function of the program calls": [
    "await twice(() => a2());",
    "async function twice(work: () => Promise<void>): Promise<void> { await work(); await work(); }",
  ],
  "in a callback that is passed on": [
    "await outer(async () => { await a2(); });",
    `async function twice(work: () => Promise<void>): Promise<void> { await work(); }
     async function outer(work: () => Promise<void>): Promise<void> { await twice(work); }`,
  ],
  "by `call`": ["await a2.call(undefined);", ""],
  "in a function that is called in place": ["await (async () => { await a2(); })();", ""],
  "through an interface": [
    "await new Map<string, Runs>().get('x')!.run();",
    `interface Runs { run(): Promise<void> } class One implements Runs { async run() { await a2(); } } new One();`,
  ],
  "through an interface that a class matches only by its shape": [
    "await given.run();",
    `interface Runs { run(): Promise<void> } class One { async run() { await a2(); } } declare const given: Runs; new One();`,
  ],
  "through a type, by an object of this type": [
    "await given.run();",
    `type Runs = { run(): Promise<void> }; const one: Runs = { async run() { await a2(); } }; declare let given: Runs; given = one;`,
  ],
  "through an interface that an object matches only by its shape": [
    "await given.run();",
    `interface Runs { run(): Promise<void>; stop?(): void } declare const given: Runs; const one = { async run() { await a2(); }, more: 1 }; void one;`,
  ],
  "through a part of a type, by an object without a type": [
    "await stop(one);",
    `interface Runs { run(): Promise<void>; stop(): Promise<void> } const one = { async run() {}, async stop() { await a2(); } };
     async function stop(given: Pick<Runs, "stop">) { await given.stop(); }`,
  ],
  "through a property that is a function": [
    "await given.run();",
    `interface Runs { run: () => Promise<void> } const one: Runs = { run: async () => { await a2(); } }; declare let given: Runs; given = one;`,
  ],
  "through an abstract method": [
    "await given.run();",
    `abstract class Runs { abstract run(): Promise<void> } class One extends Runs { async run() { await a2(); } } declare const given: Runs; new One();`,
  ],
  "through an override of an override": [
    "await given.run();",
    `class Runs { async run() {} } class One extends Runs {} class Two extends One { override async run() { await a2(); } } declare const given: Runs; new Two();`,
  ],
  "through an object's shorthand": ["await tools.a2();", "const tools = { a2 };"],
  "through another name": ["await other();", "const other = a2;"],
  "by one of two functions": ["await (1 < 2 ? b2 : a2)();", ""],
  "in a loop over a generator": [
    "for await (const one of all()) void one;",
    "async function* all() { await a2(); yield 1; }",
  ],
  "after a condition": ["1 < 2 && (await a2());", ""],
  "by a promise that is awaited later": ["const done = a2(); await done;", ""],
  "in a chain of calls": ["await a2().catch(() => undefined);", ""],
} as const;

for (const [how, [inside, more]] of Object.entries(ORDERED)) {
  test(`a lock that is acquired ${how} is found`, (t) => {
    t.deepEqual(
      found(both(inside, { more })).filter((one) => one.startsWith("LW1501")),
      ["LW1501 b2"],
    );
  });
}

const UNORDERED = {
  "is not awaited": ["void a2();", ""],
  "is not awaited in a chain of calls": ["void a2().catch(() => undefined);", ""],
  "is not awaited by the caller of the callback": ["[1].forEach(async () => { await a2(); });", ""],
  "runs later": ["later(() => a2(), 1);", "declare function later(work: () => void, ms: number): void;"],
  "is only passed on": [
    "keep(a2);",
    "const kept: unknown[] = []; function keep(work: unknown) { kept.push(work); }",
  ],
  "is called in a function that nobody calls": ["const later = async () => { await a2(); }; void later;", ""],
  "belongs to a class without the interface": [
    "await given.run();",
    `interface Runs { run(): Promise<void> } interface Walks { walk(): Promise<void>; run(): Promise<void> }
     class One implements Walks { async walk() {} async run() { await a2(); } private own = 1; } class Two implements Runs { async run() {} }
     declare const given: Two; void [One, Two];`,
  ],
  "belongs to an object without all members of the interface": [
    "await given.run();",
    `interface Runs { run(): Promise<void>; walk(): void } declare const given: Runs;
     const one = { async run() { await a2(); } }; const other = { async run() { await a2(); }, walk: 1 }; void [one, other];`,
  ],
  "belongs to another subclass, and not to the base that `super` calls": [
    "await new Two().run();",
    `class One { async run() {} } class Two extends One { override async run() { await super.run(); } } class Three extends One { override async run() { await a2(); } } void Three;`,
  ],
} as const;

for (const [how, [inside, more]] of Object.entries(UNORDERED)) {
  test(`a lock that ${how} makes no cycle`, (t) => {
    t.deepEqual(
      found(both(inside, { more })).filter((one) => one.startsWith("LW1501")),
      [],
    );
  });
}

test("a lock with retryTimes=0 or waitTime=0 makes no cycle", (t) => {
  t.deepEqual(found(both("await a2();", { b: "retryTimes=0" })), []);
  t.deepEqual(found(both("await a2();", { b: "waitTime=0" })), []);
});

test("read locks make no cycle, and a read lock makes one with a write lock", (t) => {
  t.deepEqual(found(both("await a2();", { b: "mode=read" })), []);
  const writer = "/** @redisLock businessFlag=b */ export async function b3(): Promise<void> { await a2(); }";
  t.deepEqual(found(both("", { b: "mode=read", more: writer })), ["LW1501 b2"]);
});

test("a cycle through an interface with several implementations is not certain", (t) => {
  const one =
    "interface Runs { run(): Promise<void> } class One implements Runs { async run() { await a2(); } }";
  const other = "class Two implements Runs { async run() {} } declare const given: Runs; void [One, Two];";
  const isCertain = (more: string): boolean[] =>
    analyzed(both("await given.run();", { more })).findings.map((finding) => finding.isCertain);
  t.deepEqual(isCertain(`${one} declare const given: Runs; void One;`), [true]);
  t.deepEqual(isCertain(`${one} ${other}`), [false]);
});

test("jobs that call each other through one interface make a cycle that is not certain", (t) => {
  const files = {
    "jobs.ts": `interface Job { exec(id: string): Promise<void> }
class Pay implements Job { constructor(readonly next: Job) {}
  /** @redisLock businessFlag=pay keyName=id */ async exec(id: string): Promise<void> { await this.next.exec(id); } }
class Ship implements Job { constructor(readonly next: Job) {}
  /** @redisLock businessFlag=ship keyName=id */ async exec(id: string): Promise<void> { await this.next.exec(id); } }
void [Pay, Ship];`,
  };
  t.deepEqual(found(files), ["LW1501 exec"]);
  t.false(analyzed(files).findings[0]?.isCertain);
});

test("a cycle of three locks is reported once, with all three locks", (t) => {
  const [message, another] = messages({
    "three.ts": `/** @redisLock businessFlag=a */ export async function a() { await b(); }
/** @redisLock businessFlag=b */ export async function b() { await c(); }
/** @redisLock businessFlag=c */ export async function c() { await a2(); }
/** @redisLock businessFlag=a */ export async function a2() {}`,
  }).filter((one) => one.includes("different orders"));
  t.is(another, undefined);
  t.is(message, undefined, "one chain of calls that waits for itself is not a cycle of orders");
  const [cycle, second] = messages({
    "three.ts": `/** @redisLock businessFlag=a */ export async function a() { await b2(); }
/** @redisLock businessFlag=b */ export async function b() { await c2(); }
/** @redisLock businessFlag=c */ export async function c() { await a2(); }
/** @redisLock businessFlag=a */ export async function a2() {}
/** @redisLock businessFlag=b */ export async function b2() {}
/** @redisLock businessFlag=c */ export async function c2() {}`,
  });
  t.is(second, undefined);
  t.regex(cycle ?? "", /^Callers acquire `a`, `b`, and `c` in different orders/);
});

test("locks in different stores make no cycle", (t) => {
  const files = both("await a2();");
  t.deepEqual(
    found({ "both.ts": files["both.ts"]?.replace("businessFlag=b ", "businessFlag=b store=other ") ?? "" }),
    [],
  );
});

test("calls that cannot be followed are listed, each once", (t) => {
  const { unfollowed } = analyzed(
    both("await given(); await library(() => a2()); await library(() => undefined); await twice(a2);", {
      more: `declare let given: () => Promise<void>;
declare function library(work: () => unknown): Promise<void>;
async function twice(work: () => Promise<void>) { await work(); }`,
    }),
  );
  t.deepEqual(
    unfollowed.map(({ node, why }) => `${why} ${node.getText()}`),
    ["dynamic given", "callback () => a2()"],
  );
});

test("a callback that a tagged function calls is listed as a call that cannot be followed", (t) => {
  const { unfollowed } = analyzed({
    "with.ts": `/** @redisLock businessFlag=a */
export async function underA(work: () => Promise<void>): Promise<void> { await work(); }`,
  });
  t.deepEqual(
    unfollowed.map(({ why }) => why),
    ["dynamic"],
  );
});
