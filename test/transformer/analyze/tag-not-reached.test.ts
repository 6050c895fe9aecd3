import test from "ava";
import { found, messages } from "./analyzed";

const file = (text: string): Record<string, string> => ({ "one.ts": text });

const BASE = `export class Base {
  /** @redisLock businessFlag=pay */
  async pay(): Promise<void> {}
}
`;

test("an override without the tag of the method that it overrides is reported", (t) => {
  const files = file(`${BASE} export class Own extends Base { override async pay(): Promise<void> {} }`);
  t.deepEqual(found(files), ["LW1507 pay"]);
  t.deepEqual(messages(files), [
    "`Base.pay` is locked, but `Own.pay`, which overrides it, is not. Tags are not inherited. Fix: also tag it, or call `Base.pay`.",
  ]);
});

test("an override that acquires only other locks is reported, and one that acquires the same lock is not", (t) => {
  const own = (flag: string): Record<string, string> =>
    file(`${BASE} /** @redisLock businessFlag=${flag} */
async function book(): Promise<void> {}
export class Own extends Base { override async pay(): Promise<void> { await book(); } }`);
  t.deepEqual(found(own("ledger")), ["LW1507 pay"]);
  t.deepEqual(found(own("pay")), []);
});

test("an override with a tag, an override that calls `super`, and a class without one are not reported", (t) => {
  for (const inside of [
    "/** @redisLock businessFlag=pay */ override async pay(): Promise<void> {}",
    "override async pay(): Promise<void> { await super.pay(); }",
    "override pay(): Promise<void> { return super.pay(); }",
    "async other(): Promise<void> {}",
  ]) {
    t.deepEqual(found(file(`${BASE} export class Own extends Base { ${inside} }`)), [], inside);
  }
});

const STOCK = `export interface Stock { reserve(): Promise<void>; look(): Promise<void> }
export class One implements Stock {
  /** @redisLock businessFlag=stock */
  async reserve(): Promise<void> {}
  async look(): Promise<void> {}
}
`;

test("an implementation without the tag of another implementation is reported", (t) => {
  const files = file(`${STOCK} export class Two implements Stock { async reserve() {} async look() {} }`);
  t.deepEqual(found(files), ["LW1507 reserve"]);
  t.deepEqual(messages(files), [
    "`Two.reserve` and `One.reserve` implement `Stock.reserve`, but only `One.reserve` is locked. Tags are not inherited. Fix: also tag it.",
  ]);
});

test("an implementation of an abstract method without the tag of another implementation is reported", (t) => {
  const files = file(`export abstract class Stock { abstract reserve(): Promise<void>; async look() {} }
export abstract class Cold extends Stock {}
export class One extends Cold {
  /** @redisLock businessFlag=stock */
  async reserve(): Promise<void> {}
  /** @redisLock businessFlag=look */
  override async look(): Promise<void> {}
}
export class Two extends Stock { async reserve() {} override async look() {} }`);
  t.deepEqual(messages(files), [
    "`Two.reserve` and `One.reserve` implement `Stock.reserve`, but only `One.reserve` is locked. Tags are not inherited. Fix: also tag it.",
  ]);
});

test("an implementation that delegates to a locked one, or has no interface, is not reported", (t) => {
  for (const more of [
    "export class Two implements Stock { constructor(readonly one: One) {} async reserve() { await this.one.reserve(); } async look() {} }",
    "export class Two implements Stock { constructor(readonly one: Stock) {} reserve() { return this.one.reserve(); } async look() {} }",
    `export class Two implements Stock { constructor(readonly one: Stock) {} async reserve() { await this.run(() => this.one.reserve()); } async look() {}
      private async run(work: () => Promise<void>) { await work(); } }`,
    `declare function run(work: () => Promise<void>): Promise<void>;
      export class Two implements Stock { constructor(readonly one: Stock) {} reserve() { return run(() => this.one.reserve()); } async look() {} }`,
    "export class Two { async reserve() {} async look() {} }",
    "export const two = { async reserve() {}, async look() {} };",
    "export class Two { constructor(readonly name: string) {} async reserve(many: number) { return many; } }",
  ]) {
    t.deepEqual(found(file(STOCK + more)), [], more);
  }
});

test("a synchronous implementation is not reported, because it cannot be locked", (t) => {
  const files = file(`interface Ends { end(): void | Promise<void> }
export class One implements Ends { /** @redisLock businessFlag=end */ async end(): Promise<void> {} }
export class Two implements Ends { end(): void {} }`);
  t.deepEqual(found(files), []);
});

test("a fake in a test file is not reported, and does not count as an implementation", (t) => {
  const fakes = `import type { Stock } from "./one.js";
export class Fake implements Stock { async reserve() {} async look() {} }
export const fake: Stock = { reserve: async () => {}, look: async () => {} };
export const loose = { async reserve() {}, async look() {} };`;
  t.deepEqual(found({ ...file(STOCK), "one.test.ts": fakes }), []);
  t.deepEqual(found({ ...file(STOCK), "fakes.ts": fakes }), ["LW1507 reserve", "LW1507 async () => {}"]);
});
