import test from "ava";
import { found, said } from "./analyzed";

const DECLARED = `
declare function work(id?: string): Promise<void>;
declare function plain(): void;
declare function keep(work: () => void): Promise<void>;
declare function setTimeout(work: () => void, ms: number): number;
declare class Emitter { on(name: string, listener: (...args: string[]) => void): this }
declare const emitter: Emitter;
declare const items: string[];
`;

const body = (inside: string, more = ""): Record<string, string> => ({
  "one.ts": `${DECLARED}
export class Orders {
  running: Promise<void>[] = [];
  state = 0;
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
  "a promise behind a condition": ["if (this.state) work();", "work()"],
  "a promise behind `&&`": ["this.state > 0 && work();", "work()"],
  "a promise in a variable that nobody reads": ["const done = work();", "work()"],
  "promises of `map` that nobody awaits": [
    "items.map((item) => work(item));",
    "items.map((item) => work(item))",
  ],
  "an `async` callback of `forEach`": [
    "items.forEach(async (item) => { await work(item); });",
    "async (item) => { await work(item); }",
  ],
  "a function that gives a promise, for `forEach`": ["items.forEach(work);", "work"],
  "an `async` listener": ["emitter.on('x', async () => { await work(); });", "async () => { await work(); }"],
  "an `async` timer": ["setTimeout(async () => work(), 1);", "async () => work()"],
  "a promise that is given work and not awaited, once": [
    "keep(async () => work());",
    "keep(async () => work())",
  ],
  "a function that is called where it stands": [
    "(async () => { await work(); })();",
    "(async () => { await work(); })()",
  ],
  "a timer that writes": ["setTimeout(() => { this.state = 1; }, 1);", "() => { this.state = 1; }"],
  "a promise that is put where nobody awaits it": ["this.running.push(work());", "work()"],
  "a promise in a callback that is awaited": [
    "await Promise.all(items.map(async (item) => { void work(item); }));",
    "work(item)",
  ],
};

for (const [what, [inside, words]] of Object.entries(OUTLIVING)) {
  test(`${what} may outlive the lock`, (t) => {
    t.deepEqual(found(body(inside)), [`LW1503 ${words}`]);
  });
}

const FINE: Readonly<Record<string, string>> = {
  "what is awaited": "await work();",
  "what is returned": "return work();",
  "what is no promise": "plain(); void this.state;",
  "a promise that is awaited later": "const done = work(); plain(); await done;",
  "a handler of a promise that is awaited later":
    "const done = work(); done.catch(() => undefined); await done;",
  "promises that are awaited together": "await Promise.all(items.map((item) => work(item)));",
  "promises that are collected and awaited":
    "const all: Promise<void>[] = []; for (const item of items) all.push(work(item)); await Promise.all(all);",
  "promises in a field that are awaited": "this.running.push(work()); await Promise.all(this.running);",
  "what is taken out of a list of promises": "this.running.splice(0); await Promise.all(this.running);",
  "a plain callback": "items.forEach((item) => { plain(); void item; });",
  "a timer that is kept": "const timer = setTimeout(() => { this.state = 1; }, 1); void timer;",
  "a timer that writes nothing": "setTimeout(() => plain(), 1);",
  "a promise that is made by hand":
    "await new Promise<void>((resolve) => { setTimeout(() => resolve(), 1); });",
  "what a promise that is made by hand waits for":
    "await new Promise<void>((resolve) => { work().then(resolve); });",
  "what a function does that is only written there":
    "const later = (): void => { void work(); }; return later;",
};

for (const [what, inside] of Object.entries(FINE)) {
  test(`${what} is no finding`, (t) => {
    t.deepEqual(found(body(inside)), []);
  });
}

test("it says what, and of which lock", (t) => {
  t.deepEqual(said(body("void work();")), [
    "`work` is `void`ed: it may still run when `Orders.pay` has given its lock back. " +
      "Wait for it before the end of the body, or start it when the lock is released.",
  ]);
});

test("what has no tag may start what it likes", (t) => {
  t.deepEqual(found(body("", "async other(): Promise<void> { void work(); }")), []);
});

test("a comment that says why allows it, behind it and above", (t) => {
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503: it only counts")), []);
  t.deepEqual(found(body("// lockweave-allow LW1503: it only counts\n void work();")), []);
  t.deepEqual(found(body("// lockweave-allow LW1503: it only counts\n\n void work();")), ["LW1503 work()"]);
  t.deepEqual(found(body("void work(); // lockweave-allow LW1501: another")), ["LW1503 work()"]);
});

test("a comment that says no reason is told to", (t) => {
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503")), ["LW1508 lockweave-allow LW1503"]);
  t.deepEqual(found(body("void work(); // lockweave-allow LW1503:")), ["LW1508 lockweave-allow LW1503"]);
});
