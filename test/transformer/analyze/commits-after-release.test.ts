import test from "ava";
import { analyzed, found, messages } from "./analyzed";

/** The parts of the libraries that these programs use. The matrix has programs for the real ones. */
const LIBRARIES = `
declare module "typeorm" {
  export class EntityManager { create<T>(type: new () => T): T; create<T>(type: new () => T, all: object[]): T[]; query(sql: string): Promise<any>; getRepository(name: string): Repository }
  export class Repository { save(value: object): Promise<{ id: string }> }
  export class DataSource { transaction<T>(run: (manager: EntityManager) => Promise<T>): Promise<T> }
}
declare module "typeorm-transactional" {
  export enum Propagation { REQUIRED = "REQUIRED", REQUIRES_NEW = "REQUIRES_NEW", SUPPORTS = "SUPPORTS", NOT_SUPPORTED = "NOT_SUPPORTED" }
  export const Transactional: (options?: { propagation?: Propagation }) => MethodDecorator;
  export const runOnTransactionCommit: (run: () => void) => void;
  export const runInTransaction: <T>(run: () => Promise<T>, options?: { propagation?: Propagation }) => Promise<T>;
}
declare module "async_hooks" {
  export class AsyncLocalStorage<T> { run<R>(store: T, run: () => R): R }
}
declare module "lockweave" {
  export interface HeldLock { guard(run: (sql: string) => Promise<unknown>): Promise<void> }
  export function currentLock(): HeldLock;
}
declare module "other" {
  export const Transactional: () => MethodDecorator;
  export class DataSource { transaction<T>(run: (manager: object) => Promise<T>): Promise<T> }
  export function transaction<T>(run: (manager: object) => Promise<T>): Promise<T>;
}
declare module "pg" {
  export class Client { query(sql: string): Promise<unknown> }
}
`;

const COMMON = `
import type { DataSource, EntityManager } from "typeorm";
export declare const source: DataSource;
/** @redisLock businessFlag=stock keyName=id */
export async function locked(id: string, tx: EntityManager): Promise<void> { await tx.query(id); }
/** @redisLock businessFlag=alone keyName=id */
export async function alone(id: string): Promise<void> { void id; }
`;

const IMPORTS = `import type { DataSource, EntityManager } from "typeorm";
import type { Client } from "pg";
import { Propagation, Transactional } from "typeorm-transactional";
import { currentLock } from "lockweave";
import { alone, locked, source } from "./common.js";
`;

const program = (files: Readonly<Record<string, string>>): Record<string, string> => ({
  "libraries.d.ts": LIBRARIES,
  "common.ts": COMMON,
  ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`${name}.ts`, IMPORTS + text])),
});

const LATE = ["locked"];

// ---- what is reported --------------------------------------------------------------------------------------

test("a tagged call in a transaction that passes the transaction on is reported, with the path", (t) => {
  const files = program({
    one: `async function retried(tx: EntityManager): Promise<void> { await locked("a", tx); }
export async function pay(): Promise<void> { await source.transaction(async (tx) => { await retried(tx); }); }`,
  });
  t.deepEqual(messages(files), [
    "`locked` releases its lock `stock` before the transaction of `source.transaction` (one.ts:7) commits, so the next holder may read old data: " +
      "its callback calls `retried` (one.ts:7), which calls `locked` (one.ts:6). Fix: acquire the lock first, and run the transaction inside it. " +
      "If the lock is in the same PostgreSQL database, you can also call `currentLock().guard(...)` in the locked body, on the connection of the transaction.",
  ]);
});

const HOSTILE: Readonly<Record<string, readonly [text: string, expected: readonly string[]]>> = {
  "an alias of the method": [
    `const run = source.transaction.bind(source);
export const pay = () => run(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a destructured method": [
    `const { transaction } = source;
export const pay = () => transaction(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a destructured and renamed method": [
    `const { transaction: inTx } = source;
export const pay = () => inTx(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a name in brackets": [
    `export const pay = () => source["transaction"](async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "optional calls": [
    `declare const maybe: DataSource | undefined;
export const pay = () => maybe?.transaction(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a callback in a variable": [
    `const work = async (tx: EntityManager) => { await locked("a", tx); };
export const pay = () => source.transaction(work);`,
    LATE,
  ],
  "a tagged callback": [
    `/** @redisLock businessFlag=stock */
const work = async (tx: EntityManager): Promise<void> => { await tx.query("a"); };
export const pay = () => source.transaction(work);`,
    ["@redisLock"],
  ],
  "the tagged function itself": [
    `/** @redisLock businessFlag=stock */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
export const pay = () => source.transaction(own);`,
    ["@redisLock"],
  ],
  "a method as a class field": [
    `export class Stock { reserve = async (tx: EntityManager) => { await locked("a", tx); };
  pay() { return source.transaction(async (tx) => this.reserve(tx)); } }`,
    ["reserve"],
  ],
  "a callback in a class field": [
    `export class Stock { work = async (tx: EntityManager) => { await locked("a", tx); };
  pay() { return source.transaction(this.work); } }`,
    LATE,
  ],
  "a bound callback": [
    `export class Stock { async work(tx: EntityManager) { await locked("a", tx); }
  pay() { return source.transaction(this.work.bind(this)); } }`,
    LATE,
  ],
  "a subclass of the data source": [
    `declare class Own extends (null as unknown as typeof DataSource) {}
declare const own: Own;
export const pay = () => own.transaction(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a data source of a generic type": [
    `export class Repo<D extends DataSource> { constructor(readonly data: D) {}
  pay() { return this.data.transaction(async (tx) => { await locked("a", tx); }); } }`,
    LATE,
  ],
  "a function that runs its callback in a transaction": [
    `function inTx<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> { return source.transaction((tx) => work(tx)); }
export const pay = () => inTx(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a function that passes its callback on": [
    `function inTx<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> { return source.transaction(work); }
const again = <T>(work: (tx: EntityManager) => Promise<T>) => inTx(work);
export const pay = () => again(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a unit of work behind an interface": [
    `export interface Work { run<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> }
export class Real implements Work { run<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> { return source.transaction(async (tx) => { return await work(tx); }); } }
export const pay = (work: Work) => work.run(async (tx) => { await locked("a", tx); });`,
    LATE,
  ],
  "a callback that gets the transaction from an AsyncLocalStorage": [
    `import { AsyncLocalStorage } from "async_hooks";
const storage = new AsyncLocalStorage<EntityManager>();
function inTx<T>(work: () => Promise<T>): Promise<T> { return source.transaction((tx) => storage.run(tx, work)); }
export const pay = () => inTx(async () => { await alone("a"); });`,
    ["alone"],
  ],
  "a callback inside that of an AsyncLocalStorage": [
    `import { AsyncLocalStorage } from "async_hooks";
const storage = new AsyncLocalStorage<EntityManager>();
function inTx<T>(work: () => Promise<T>): Promise<T> { return source.transaction((tx) => storage.run(tx, async () => await work())); }
export const pay = () => inTx(async () => { await alone("a"); });`,
    ["alone"],
  ],
  "an object around the transaction": [
    `/** @redisLock businessFlag=object keyName=id */
async function own(id: string, { tx }: { tx: EntityManager }): Promise<void> { await tx.query(id); }
export const pay = () => source.transaction(async (tx) => { const options = { tx }; await own("a", options); });`,
    ["own"],
  ],
  "an object that is made with the transaction": [
    `class Stock { constructor(private readonly tx: EntityManager) {}
  /** @redisLock businessFlag=object keyName=id */
  async reserve(id: string): Promise<void> { await this.tx.query(id); } }
export const pay = () => source.transaction(async (tx) => { const stock = new Stock(tx); await stock.reserve("a"); });`,
    ["reserve"],
  ],
  "a repository of the transaction": [
    `import type { Repository } from "typeorm";
/** @redisLock businessFlag=object */
async function own(rows: Repository): Promise<void> { await rows.save({}); }
export const pay = () => source.transaction((manager) => own(manager.getRepository("a")));`,
    ["own"],
  ],
  "a function inside the callback": [
    `export const pay = () => source.transaction(async (tx) => {
  /** @redisLock businessFlag=inner */
  const inner = async (): Promise<void> => { await tx.query("a"); };
  await inner(); });`,
    ["inner"],
  ],
  "calls in Promise.all": [
    `export const pay = () => source.transaction(async (tx) => { await Promise.all(["a"].map((id) => locked(id, tx))); });`,
    ["map"],
  ],
  "BEGIN and COMMIT": [
    `/** @redisLock businessFlag=object keyName=id */
async function own(id: string, client: Client): Promise<void> { await client.query(id); }
export async function pay(client: Client): Promise<void> {
  await client.query("begin isolation level serializable");
  try { await own("a", client); await client.query("COMMIT"); } catch { await client.query("ROLLBACK"); } }`,
    ["own"],
  ],
  "a decorator on the same method, before the tag": [
    `export class Stock {
  @Transactional()
  /** @redisLock businessFlag=object keyName=id */
  async reserve(id: string): Promise<void> { void id; } }`,
    ["@redisLock"],
  ],
  "a decorator on a caller": [
    `export class Stock {
  @Transactional()
  async pay(id: string): Promise<void> { await this.reserve(id); }
  private async reserve(id: string): Promise<void> { await alone(id); } }`,
    ["reserve"],
  ],
  "decorators of the project": [
    `const One = Transactional();
const two = () => Transactional({ propagation: Propagation.REQUIRED });
function Three(): MethodDecorator { return two(); }
export class Stock { @One async one(): Promise<void> { await alone("a"); }
  @Three() async three(): Promise<void> { await alone("a"); } }`,
    ["alone", "alone"],
  ],
  "a renamed decorator of a namespace": [
    `import * as cls from "typeorm-transactional";
const { Transactional: Tx } = cls;
export class Stock { @cls.Transactional() async one(): Promise<void> { await alone("a"); }
  @Tx() async two(): Promise<void> { await alone("a"); } }`,
    ["alone", "alone"],
  ],
};

// ---- what is not ------------------------------------------------------------------------------------------

const RIGHT: Readonly<Record<string, string>> = {
  "a lock around the transaction": `/** @redisLock businessFlag=around */
export async function pay(): Promise<void> { await source.transaction(async (tx) => { await tx.query("a"); }); }`,
  "a lock that does not get the transaction": `export const pay = () => source.transaction(async (tx) => { await tx.query("a"); await alone("a"); });`,
  "a lock that gets a row": `export const pay = () => source.transaction(async (tx) => { const row = await tx.getRepository("a").save({}); const [one] = await tx.query("a"); await alone(row.id); await alone(one.id); });`,
  "a lock that gets a new entity": `class Order { id = ""; }
/** @redisLock businessFlag=entity */
async function notify(order: Order): Promise<void> { void order; }
export const pay = () => source.transaction(async (tx) => { const order = tx.create(Order); await notify(order); });`,
  "a lock that gets new entities": `class Order { id = ""; pay(): void {} }
/** @redisLock businessFlag=entities */
async function notify(orders: Order[]): Promise<void> { void orders; }
export const pay = () => source.transaction(async (tx) => { const orders = tx.create(Order, [{}]); await notify(orders); });`,
  "a lock that gets a row from an object around the transaction": `declare class Decimal { toJSON(): string }
class Order { id = ""; total = new Decimal(); at = new Date(); parts: Order[] = []; data: Record<string, unknown> = {} }
interface Context { tx: EntityManager; order: Order }
/** @redisLock businessFlag=row */
async function notify(order: Order): Promise<void> { void order; }
async function again({ tx, order }: Context): Promise<void> { await tx.query(order.id); await notify(order); }
export const pay = (order: Order) => source.transaction(async (tx) => { const context = { tx, order }; await notify(context.order); await again(context); });`,
  "a callback that runs after the commit": `import { runOnTransactionCommit } from "typeorm-transactional";
export class Stock {
  @Transactional()
  async save(done: () => Promise<void>): Promise<void> { runOnTransactionCommit(() => void done()); }
  async pay(): Promise<void> { await this.save(async () => { await alone("a"); }); } }`,
  "a call that is not awaited": `export const pay = () => source.transaction(async (tx) => { void locked("a", tx); });`,
  "a function that is not called": `export const pay = () => source.transaction(async (tx) => { const later = () => locked("a", tx); void later; });`,
  "other libraries": `import * as other from "other";
declare const theirs: other.DataSource;
export const pay = () => theirs.transaction(async (tx) => { await locked("a", tx as EntityManager); });
export const again = () => other.transaction(async (tx) => { await locked("a", tx as EntityManager); });
export class Stock { @other.Transactional() async pay(): Promise<void> { await alone("a"); } }`,
  "a function of the project with the same name": `async function transaction<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> { return work({} as EntityManager); }
export const pay = () => transaction(async (tx) => { await locked("a", tx); });`,
  any: `declare const anything: any;
export const pay = () => anything.transaction(async (tx: EntityManager) => { await locked("a", tx); });`,
  "a call before BEGIN and after COMMIT": `/** @redisLock businessFlag=object keyName=id */
async function own(id: string, client: Client): Promise<void> { await client.query(id); }
export async function pay(client: Client): Promise<void> {
  await own("a", client); await client.query("BEGIN"); await client.query("COMMIT"); await own("a", client); }`,
  "a decorator that has a transaction of its own": `const Audited = (): MethodDecorator => () => { void source.transaction(async (tx) => tx.query("a")); };
export class Stock { @Audited() async one(): Promise<void> { await alone("a"); } }`,
  "a call after a rollback": `/** @redisLock businessFlag=object keyName=id */
async function own(id: string, client: Client): Promise<void> { await client.query(id); }
export async function pay(client: Client, isWrong: boolean): Promise<void> {
  await client.query("BEGIN");
  if (isWrong) { await client.query("ROLLBACK"); await own("a", client); return; }
  await client.query("COMMIT"); }`,
  "a call after the transaction": `export async function pay(): Promise<void> { await source.transaction(async (tx) => { await tx.query("a"); }); await alone("a"); }`,
  "a reader": `/** @redisLock businessFlag=object mode=read */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
export const pay = () => source.transaction((tx) => own(tx));`,
  permits: `/** @redisLock businessFlag=object permits=3 */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
export const pay = () => source.transaction((tx) => own(tx));`,
  "a lock that expires": `/** @redisLock businessFlag=object autoUnlock=false */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
export const pay = () => source.transaction((tx) => own(tx));`,
  "a lock that expires unless the body throws": `/** @redisLock businessFlag=object autoUnlock=onError */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
export const pay = () => source.transaction((tx) => own(tx));`,
  "a guard in the transaction": `/** @redisLock businessFlag=object */
async function own(tx: EntityManager): Promise<void> { const lock = currentLock(); await lock.guard((sql) => tx.query(sql)); await tx.query("a"); }
export const pay = () => source.transaction((tx) => own(tx));`,
  "a guard in a callback of a library": `declare function traced<T>(run: () => Promise<T>): Promise<T>;
/** @redisLock businessFlag=object */
async function own(tx: EntityManager): Promise<void> { await traced(async () => { await currentLock().guard((sql) => tx.query(sql)); await tx.query("a"); }); }
export const pay = () => source.transaction((tx) => own(tx));`,
  "a nested transaction of its own": `export class Stock {
  @Transactional()
  async pay(): Promise<void> { await this.reserve(); }
  /** @redisLock businessFlag=object */
  async reserve(): Promise<void> { await this.inner(); }
  @Transactional({ propagation: Propagation.REQUIRES_NEW })
  async inner(): Promise<void> {} }`,
  "a nested callback of its own": `import { runInTransaction } from "typeorm-transactional";
/** @redisLock businessFlag=object */
async function own(): Promise<void> { await runInTransaction(async () => {}, { propagation: Propagation.REQUIRES_NEW }); }
export const pay = () => runInTransaction(async () => { await own(); });`,
  "a propagation that is not known": `declare const propagation: Propagation;
export class Stock {
  /** @redisLock businessFlag=object */
  @Transactional({ propagation })
  async one(): Promise<void> {} }`,
  "no transaction": `export class Stock {
  /** @redisLock businessFlag=object */
  @Transactional({ propagation: Propagation.SUPPORTS })
  async one(): Promise<void> {}
  /** @redisLock businessFlag=other */
  @Transactional({ propagation: Propagation.NOT_SUPPORTED })
  async two(): Promise<void> {} }`,
  "the same reentrant lock around the transaction": `/** @redisLock businessFlag=object reentrant=true */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
/** @redisLock businessFlag=object reentrant=true */
export async function pay(): Promise<void> { await source.transaction(async (tx) => { await own(tx); }); }`,
  "the same reentrant lock in a caller of the function with the transaction": `/** @redisLock businessFlag=object reentrant=true */
async function own(tx: EntityManager): Promise<void> { await tx.query("a"); }
async function book(): Promise<void> { await source.transaction(async (tx) => { await own(tx); }); }
/** @redisLock businessFlag=object reentrant=true */
export async function pay(): Promise<void> { await book(); }`,
};

/** Analyzes all of these programs at once, because each program takes as long as all of them. */
function foundByName(): ReadonlyMap<string, readonly string[]> {
  const texts = [
    ...Object.entries(HOSTILE).map(([name, [text]]) => [name, text] as const),
    ...Object.entries(RIGHT),
  ];
  const files = Object.fromEntries(texts.map(([, text], index) => [`file${index}`, text]));
  const { findings } = analyzed(program(files));
  return new Map(
    texts.map(([name], index) => [
      name,
      findings
        .filter(
          ({ file, problem }) => problem.code === "LW1509" && file.fileName.endsWith(`/file${index}.ts`),
        )
        .map(({ file, problem: { start, end } }) => file.text.slice(start, end)),
    ]),
  );
}

let all: ReadonlyMap<string, readonly string[]>;

test.before(() => {
  all = foundByName();
});

for (const [name, [, expected]] of Object.entries(HOSTILE)) {
  test(`a lock in a transaction is reported: ${name}`, (t) => {
    t.deepEqual(all.get(name), expected);
  });
}

for (const name of Object.keys(RIGHT)) {
  test(`nothing is reported: ${name}`, (t) => {
    t.deepEqual(all.get(name), []);
  });
}

const OWN = `/** @redisLock businessFlag=own */
export async function own(): Promise<void> {}
export async function inTransaction<T>(work: () => Promise<T>): Promise<T> { return await work(); }
export class Database { async transaction<T>(work: () => Promise<T>): Promise<T> { return await work(); } }
export const Unit = (): MethodDecorator => () => {};
`;
const USES = `import { Database, inTransaction, own, Unit } from "./db/own.js";
export const one = () => inTransaction(async () => { await own(); });
export const two = () => new Database().transaction(async () => { await own(); });
export class Three { @Unit() async three(): Promise<void> { await own(); } }
`;

test("a project can name the functions that start its own transactions, by the file or package that declares them", (t) => {
  const foundWith = (...transactions: string[]): string[] =>
    found({ "src/db/own.ts": OWN, "src/uses.ts": USES }, { transactions });
  t.deepEqual(foundWith(), []);
  t.deepEqual(foundWith("src/db/own.ts#inTransaction"), ["LW1509 own"]);
  t.deepEqual(foundWith("./src/db/own#Database.transaction", "db/own#Unit"), ["LW1509 own", "LW1509 own"]);
  t.deepEqual(foundWith("src/db/own.ts#Other.transaction", "other#inTransaction", "wn#Unit"), []);
  const ofPackage = `declare module "@acme/db" { export function inTransaction<T>(work: () => Promise<T>): Promise<T>; }`;
  const uses = `import { inTransaction } from "@acme/db";
/** @redisLock businessFlag=own */
async function own(): Promise<void> {}
export const one = () => inTransaction(async () => { await own(); });`;
  const files = { "acme.d.ts": ofPackage, "uses.ts": uses };
  t.deepEqual(found(files), []);
  t.deepEqual(found(files, { transactions: ["@acme/db#inTransaction"] }), ["LW1509 own"]);
});

test("a transaction in a test file is not reported", (t) => {
  const text = `${IMPORTS} export const pay = () => source.transaction(async (tx) => { await locked("a", tx); });`;
  const files = (name: string): Record<string, string> => ({ ...program({}), [name]: text });
  t.deepEqual(found(files("pay.ts")), ["LW1509 locked"]);
  t.deepEqual(found(files("pay.test.ts")), []);
});

test("a comment with a reason at the transaction, at a call, or at the tag allows the lock", (t) => {
  const files = (atStart: string, atCall: string): Record<string, string> =>
    program({
      one: `export const pay = () =>
  source.transaction(${atStart}
    async (tx) => {
      await locked("a", tx); ${atCall}
    });`,
    });
  const reason = "// lockweave-allow LW1509: the next holder reads no rows";
  t.deepEqual(found(files("", "")), ["LW1509 locked"]);
  t.deepEqual(found(files(reason, "")), []);
  t.deepEqual(found(files("", reason)), []);
  t.deepEqual(found(files("", "// lockweave-allow LW1509")), ["LW1508 lockweave-allow LW1509"]);
});
