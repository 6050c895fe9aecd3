import test from "ava";
import ts from "typescript";
import { found, messages } from "./analyzed";

const LEDGER = `/** @needsLock businessFlag=order keyName=id */
export async function post(id: string): Promise<string> { return id; }
`;
const IMPORTED = 'import { post } from "./ledger.js";\n';

const withCaller = (text: string): Record<string, string> => ({
  "ledger.ts": LEDGER,
  "orders.ts": `${IMPORTED}${text}`,
});

test("a path that starts without the lock is reported at the call, with the path", (t) => {
  const files = withCaller(`async function book(id: string) { return await post(id); }
export async function pay(id: string) { return await book(id); }`);
  t.deepEqual(found(files), ["LW1510 post"]);
  t.deepEqual(messages(files), [
    "`post` needs its callers to hold the lock `order`, but nothing on this path acquires it: `pay` calls `book` (orders.ts:3), which calls `post` (orders.ts:2). Fix: write `@redisLock` on a function of the path, or call it inside `withLock()`. If the callers of `pay` hold the lock, write `@needsLock` there, too.",
  ]);
});

test("a path is not reported if a function on it holds or needs the lock", (t) => {
  for (const tag of [
    "@redisLock businessFlag=order keyName=id",
    '@redisLock businessFlag=order keyName=id when="id.length > 1"',
    "@redisLock businessFlag=order keyName=id each=true",
    "@needsLock businessFlag=order keyName=id",
  ]) {
    const text = `async function book(id: string) { return await post(id); }
/** ${tag} */ export async function pay(id: string) { return await book(id); }`;
    t.deepEqual(found(withCaller(text)), [], tag);
  }
});

test("a different lock, a shared lock, and a @needsLock for either are not enough", (t) => {
  for (const tag of [
    "@redisLock businessFlag=account keyName=id",
    "@redisLock businessFlag=order",
    "@redisLock businessFlag=order keyName=id store=other",
    "@redisLock businessFlag=order keyName=id mode=read",
    "@redisLock businessFlag=order keyName=id permits=2",
    "@needsLock businessFlag=account keyName=id",
    "@needsLock businessFlag=order keyName=id mode=read",
  ]) {
    const text = `/** ${tag} */ export async function pay(id: string) { return await post(id); }`;
    t.deepEqual(found(withCaller(text)), ["LW1510 post"], tag);
  }
});

test("@needsLock with mode=read accepts a caller that reads and one that writes", (t) => {
  const reading = LEDGER.replace("keyName=id", "keyName=id mode=read");
  for (const mode of ["read", "write"]) {
    const text = `${IMPORTED}/** @redisLock businessFlag=order keyName=id mode=${mode} */
export async function pay(id: string) { return await post(id); }`;
    t.deepEqual(found({ "ledger.ts": reading, "orders.ts": text }), [], mode);
  }
});

test("calls that the analysis cannot follow are not reported", (t) => {
  for (const [why, text] of Object.entries({
    "a callback of a library": `declare function later(run: () => void): void;
export const run = (all: string[]) => later(() => void post(all.join()));`,
    "a function that is passed on as a value": `async function book(id: string) { return await post(id); }
export const handlers = [book];`,
    "a function that is called by its name": `export class Orders { async book(id: string) { return await post(id); } }
export const call = (orders: any) => orders["book"]("1");`,
    "a decorator of the project": `function locked(_: object, __: string, ___: PropertyDescriptor): void {}
export class Orders { @locked async book(id: string) { return await post(id); } }`,
    "a function that nobody calls": "export const other = 1;",
    "a function expression that is passed on under the name of its variable": `const book = async function inner(id: string) { return await post(id); };
export const handlers = [book];`,
    "an object that a function of the project gets": `const locked = <T extends object>(methods: T): T => new Proxy(methods, {});
export const orders = locked({ async book(id: string) { return await post(id); } });`,
    "a callback of a function with the lock": `/** @redisLock businessFlag=order keyName=id */
async function inLock(id: string, run: () => Promise<string>) { return await run(); }
export async function pay(id: string) { return await inLock(id, () => post(id)); }`,
    "a callback of a function that locks by hand": `${BY_HAND}
async function inLock(id: string, run: () => Promise<string>) { return await withLock(id, async () => await run()); }
export async function pay(id: string) { return await inLock(id, () => post(id)); }`,
    "a callback of a function that may lock by hand": `${BY_HAND}
async function inLock(id: string, run: () => Promise<string>) { return id === "" ? await run() : await withLock(id, run); }
export async function pay(id: string) { return await inLock(id, () => post(id)); }`,
  }))
    t.deepEqual(found(withCaller(text)), [], why);
});

const BY_HAND = "declare function withLock(key: string, run: () => Promise<string>): Promise<string>;";

/** A base class whose `run` calls a method of its subclasses. Only one of them needs the lock. */
const JOBS = `abstract class Job {
  run(id: string): Promise<string> { return this.step(id); }
  protected step(id: string): Promise<string> { return Promise.all([id]).then(() => this.work(id)); }
  protected abstract work(id: string): Promise<string>;
}
class Posting extends Job { protected async work(id: string) { return await post(id); } }
class Mailing extends Job { protected async work(id: string) { return id; } }
class Batch extends Posting {}
`;

test("a method that a base class calls counts only for objects of its class", (t) => {
  for (const [start, expected] of [
    ["new Mailing().run(id)", []],
    ["new Posting().run(id)", ["LW1510 post"]],
    ["new Batch().run(id)", ["LW1510 post"]],
    ["(jobs[0] as Job).run(id)", ["LW1510 post"]],
    ["(jobs[0] as Mailing | Posting).run(id)", ["LW1510 post"]],
  ] as const) {
    const text = `${JOBS}export async function nightly(id: string, ...jobs: Job[]) { return await ${start}; }`;
    t.deepEqual(found(withCaller(text)), expected, start);
  }
});

test("a callback without the lock is reported if the function that gets it only calls it", (t) => {
  const text = `async function timed(run: () => Promise<string>) { const start = 1; return (await run()) + start; }
export async function pay(id: string) { return await timed(() => post(id)); }`;
  t.deepEqual(found(withCaller(text)), ["LW1510 post"]);
});

test("a path may go through methods, interfaces, and functions that run a callback immediately", (t) => {
  const text = `export interface Store { save(id: string): Promise<string> }
export class One implements Store { async save(id: string) { return await post(id); } }
export class Two implements Store { async save(id: string) { return id; } }
export class Orders {
  readonly #store: Store = new One();
  async pay(ids: string[]) { return await Promise.all(ids.map((id) => this.#store.save(id))); }
}`;
  t.deepEqual(found(withCaller(text)), ["LW1510 post"]);
  t.regex(
    messages(withCaller(text))[0] ?? "",
    /`Orders.pay` hands over a function .* which calls `One.save`/,
  );
});

test("a comment with a reason allows a call without the lock", (t) => {
  const allowed = `export async function pay(id: string) {
  // lockweave-allow LW1510: the nightly job runs alone
  return await post(id);
}`;
  t.deepEqual(found(withCaller(allowed)), []);
});

test("a function that a library exports may be called under the lock", (t) => {
  const text = "export async function pay(id: string) { return await post(id); }";
  t.deepEqual(found(withCaller(text), { options: { declaration: true } }), []);
  t.deepEqual(found(withCaller(text), { options: { target: ts.ScriptTarget.ES2022 } }), ["LW1510 post"]);
});
