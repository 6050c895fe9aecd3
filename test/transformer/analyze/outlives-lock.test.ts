import test from "ava";
import { found, messages } from "./analyzed";

const DECLARED = `
declare function work(id?: string): Promise<void>;
declare function plain(): void;
declare function keep(work: () => void): Promise<void>;
declare function setTimeout(work: () => void, ms: number): number;
declare class Emitter { on(name: string, listener: (...args: string[]) => void): this }
declare const emitter: Emitter;
declare const items: string[];
declare function queueMicrotask(work: () => void): void;
declare function setImmediate(work: () => void): { unref(): void };
declare const process: { nextTick(work: Function, ...args: unknown[]): void };
declare class Jobs { add(job: Promise<void>): Promise<void> }
declare const jobs: Jobs;
declare function every(ask: (item: string) => unknown): Promise<void>;
const kept: Promise<void>[] = [];
const settled = async (): Promise<void> => { await Promise.all(kept); };
void settled;
`;

const body = (inside: string, more = ""): Record<string, string> => ({
  "one.ts": `${DECLARED}
export class Orders {
  running: Promise<void>[] = [];
  state = 0;
  #last: Promise<void> | undefined;
  private last: Promise<void> | undefined;
  open: Promise<void> | undefined;
  #read: Promise<void> | undefined;
  private readElsewhere: Promise<void> | undefined;
  async end(): Promise<void> { const { readElsewhere } = this; await this.#read; await readElsewhere; }
  /** @redisLock businessFlag=pay */
  async pay(): Promise<unknown> {
    ${inside}
    return undefined;
  }
  ${more}
}`,
});

const OUTLIVING: Readonly<Record<string, readonly [string, string]>> = {
  "a promise that nobody awaits": ["work();", "work()"],
  "a promise that is `void`ed": ["void work();", "work()"],
  "a promise with a handler": ["work().catch(() => undefined);", "work()"],
  "a promise after a condition": ["if (this.state) work();", "work()"],
  "a promise after `&&`": ["this.state > 0 && work();", "work()"],
  "a promise in a variable that nobody reads": ["const done = work();", "work()"],
  "a promise in a property that nobody reads": [
    "const job = { at: 1, done: work() }; return job.at;",
    "work()",
  ],
  "a promise that is assigned to a variable that nobody reads": ["let done; done = work();", "work()"],
  "a promise in a private field that nobody reads": ["this.#last = work();", "work()"],
  "a promise in a field that is `private`, and that nobody reads": ["this.last = work();", "work()"],
  "promises of `map` that nobody awaits": [
    "items.map((item) => work(item));",
    "items.map((item) => work(item))",
  ],
  "an `async` callback of `forEach`": [
    "items.forEach(async (item) => { await work(item); });",
    "async (item) => { await work(item); }",
  ],
  "a function that returns a promise, as the callback of `forEach`": ["items.forEach(work);", "work"],
  "an `async` listener": ["emitter.on('x', async () => { await work(); });", "async () => { await work(); }"],
  "an `async` timer": ["setTimeout(async () => work(), 1);", "async () => work()"],
  "a call with an `async` callback that nobody awaits, only once": [
    "keep(async () => work());",
    "keep(async () => work())",
  ],
  "an `async` function that is called in place": [
    "(async () => { await work(); })();",
    "(async () => { await work(); })()",
  ],
  "a timer that writes": ["setTimeout(() => { this.state = 1; }, 1);", "() => { this.state = 1; }"],
  "a promise in a field that nobody awaits": ["this.running.push(work());", "work()"],
  "a promise in a list that nobody awaits": ["const all: Promise<void>[] = []; all.push(work());", "work()"],
  "a promise in a list whose length alone is read": [
    "const all: Promise<void>[] = []; for (const item of items) all.push(work(item)); return all.length;",
    "work(item)",
  ],
  "a promise in a set that is emptied": [
    "const all = new Set<Promise<void>>(); all.add(work().catch(() => undefined)); all.clear();",
    "work()",
  ],
  "a promise in a list of the module that the body does not await": ["kept.push(work());", "work()"],
  "a list that begins with a promise and that nobody reads": ["const all = [work()];", "work()"],
  "promises of `map` in a variable that nobody reads": [
    "const all = items.map((item) => work(item));",
    "items.map((item) => work(item))",
  ],
  "a `void`ed promise in a timer": ["setTimeout(() => { void work(); }, 1);", "work()"],
  "a promise with a handler in a timer": [
    "setImmediate(() => { if (this.state) work().catch(() => undefined); });",
    "work()",
  ],
  "a promise in a timer that is unreferenced": ["setImmediate(() => { void work(); }).unref();", "work()"],
  "a promise in a microtask": ["queueMicrotask(() => { void work(); });", "work()"],
  "a promise in the next tick": ["process.nextTick(() => { void work(); });", "work()"],
  "an `async` callback of the next tick": ["process.nextTick(async () => work());", "async () => work()"],
  "a promise that starts in one timer inside another": [
    "setTimeout(() => { setTimeout(() => { void work(); }, 1); }, 1);",
    "work()",
  ],
  "a list of promises that is awaited": [
    "await items.map((item) => work(item));",
    "items.map((item) => work(item))",
  ],
  "a promise in a list literal that is awaited": ["await [plain(), work()];", "work()"],
  "an `async` callback of `filter`": [
    "items.filter(async (item) => work(item));",
    "async (item) => work(item)",
  ],
  "an `async` callback of `some`": [
    "if (items.some(async (item) => { await work(item); })) plain();",
    "async (item) => { await work(item); }",
  ],
  "a `void`ed promise that is returned": ["return void work();", "work()"],
  "a `void`ed promise in a callback without braces": [
    "await Promise.all(items.map((item) => void work(item)));",
    "work(item)",
  ],
  "a promise in a variable that is only `void`ed": ["const done = work(); void done;", "work()"],
  "a promise before a comma": ["return (work('a'), await work('b'));", "work('a')"],
  "a promise in the callback of `finally`": ["await work().finally(() => void work('b'));", "work('b')"],
  "a promise in a callback that is awaited": [
    "await Promise.all(items.map(async (item) => { void work(item); }));",
    "work(item)",
  ],
};

test("a property in another function does not count as a use of a promise or a list with the same name", (t) => {
  const other = (name: string): string =>
    `async other(${name}: string): Promise<unknown> { return { ${name} }; }`;
  t.deepEqual(found(body("const done = work();", other("done"))), ["LW1503 work()"]);
  const filled = "const all: Promise<void>[] = []; all.push(work()); await this.other('');";
  t.deepEqual(found(body(filled, other("all"))), ["LW1503 work()"]);
});

for (const [what, [inside, words]] of Object.entries(OUTLIVING)) {
  test(`${what} may outlive the lock`, (t) => {
    t.deepEqual(found(body(inside)), [`LW1503 ${words}`]);
  });
}

const FINE: Readonly<Record<string, string>> = {
  "an awaited promise": "await work();",
  "a returned promise": "return work();",
  "a promise that the callback of `finally` returns": "await work().finally(() => work('b'));",
  "an `async` callback of `finally`":
    "await work().then(() => work('b')).finally(async () => { await work('c'); });",
  "a list of values that is awaited": "await items.filter((item) => item !== ''); await [1, 2];",
  "an `async` predicate of the program's own function": "await every(async (item) => { await work(item); });",
  "a value that is not a promise": "plain(); void this.state;",
  "a promise that is awaited later": "const done = work(); plain(); await done;",
  "a handler of a promise that is awaited later":
    "const done = work(); done.catch(() => undefined); await done;",
  "a promise in a property that is awaited later": "const job = { at: 1, done: work() }; await job.done;",
  "a promise in an object that is passed on": "const job = { at: 1, done: work() }; void job.at; return job;",
  "a promise in an object whose method is called":
    "const job = { done: work(), async end() { await this.done; } }; await job.end();",
  "a promise in a variable that is awaited in a callback":
    "let done; done = work(); const end = async () => { await done; }; await end();",
  "a promise in a field that other files can read": "this.open = work();",
  "a promise in a private field that another method reads":
    "this.#read = work(); this.readElsewhere = work();",
  "a promise in a private field that the same expression passes on": "await (this.#last = work());",
  "promises that are awaited together": "await Promise.all(items.map((item) => work(item)));",
  "promises that are collected and awaited":
    "const all: Promise<void>[] = []; for (const item of items) all.push(work(item)); await Promise.all(all);",
  "promises that are collected and awaited one by one":
    "const all = [work()]; all.push(work()); for await (const one of all) void one;",
  "promises that are collected and returned":
    "const all = new Map<string, Promise<void>>(); all.set('a', work()); return all;",
  "promises that are collected and passed on":
    "const all: Promise<void>[] = []; all.push(work()); await Promise.race(all);",
  "promises that are collected and passed on in an object":
    "const all: Promise<void>[] = []; all.push(work()); return { all };",
  "promises that are collected and awaited in a function":
    "const all: Promise<void>[] = []; const done = () => Promise.allSettled(all); all.push(work()); await done();",
  "promises in a list of the module that a called function awaits": "kept.push(work()); await settled();",
  "promises in another name of a list that is awaited":
    "const all = this.running; all.push(work()); await Promise.all(this.running);",
  "a promise that is given to a queue that awaits it": "await jobs.add(work());",
  "a promise in a timer that is kept":
    "const timer = setTimeout(() => { void work(); }, 1); plain(); void timer;",
  "a promise in a timer that is kept in a list":
    "const timers: number[] = []; timers.push(setTimeout(() => { void work(); }, 1));",
  "a promise in a timer that notifies the body at its end":
    "let done = (): void => {}; const end = new Promise<void>((resolve) => { done = resolve; }); setTimeout(() => { void work().then(done); }, 1); await end;",
  "promises in a field that are awaited": "this.running.push(work()); await Promise.all(this.running);",
  "a promise that is removed from a list": "this.running.splice(0); await Promise.all(this.running);",
  "a plain callback": "items.forEach((item) => { plain(); void item; });",
  "a timer that is kept": "const timer = setTimeout(() => { this.state = 1; }, 1); void timer;",
  "a timer that writes nothing": "setTimeout(() => plain(), 1);",
  "a promise that a constructor creates":
    "await new Promise<void>((resolve) => { setTimeout(() => resolve(), 1); });",
  "a promise that resolves one that a constructor creates":
    "await new Promise<void>((resolve) => { work().then(resolve); });",
  "a promise in a function that is not called": "const later = (): void => { void work(); }; return later;",
};

for (const [what, inside] of Object.entries(FINE)) {
  test(`${what} is not reported`, (t) => {
    t.deepEqual(found(body(inside)), []);
  });
}

test("the message names the call and the function whose lock it outlives", (t) => {
  t.deepEqual(messages(body("void work();")), [
    "`work` is `void`ed. This work may still run after `Orders.pay` has released its lock. " +
      "Fix: wait for it before the body ends, or start it after the release.",
  ]);
});

test("the message names the list that keeps the promise, or the timer that starts it", (t) => {
  const [list = "", timer = ""] = messages(
    body("const all: Promise<void>[] = []; all.push(work()); setTimeout(() => { void work(); }, 1);"),
  );
  t.true(
    list.startsWith("No code awaits the promises in `all`. This work may still run after `Orders.pay` "),
    list,
  );
  t.true(
    timer.startsWith("`work` is `void`ed in `setTimeout`. This work may still run after `Orders.pay` "),
    timer,
  );
});

test("a function without a tag may start a promise without awaiting it", (t) => {
  t.deepEqual(found(body("", "async other(): Promise<void> { void work(); }")), []);
});

test("a lockweave-allow comment after the code or right above it allows only the code that it names", (t) => {
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503: it only counts")), []);
  t.deepEqual(found(body("// lockweave-allow LW1503: it only counts\n void work();")), []);
  t.deepEqual(found(body("// lockweave-allow LW1503: it only counts\n\n void work();")), ["LW1503 work()"]);
  t.deepEqual(found(body("void work(); // lockweave-allow LW1501: another")), ["LW1503 work()"]);
});

test("a lockweave-allow comment without a reason is reported", (t) => {
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503")), ["LW1508 lockweave-allow LW1503"]);
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503:")), ["LW1508 lockweave-allow LW1503"]);
});
