import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import * as runtime from "../../../runtime";
import { configureObserved, events, held, runWoven } from "./woven-module";

test.before(configureObserved);
test.beforeEach(() => {
  events.length = 0;
});
test.after.always(() => runtime.shutdown());

type Work = (orderNo: string) => Promise<string>;

const TAG = "/** @redisLock businessFlag=typed keyName=orderNo */";
const BODY = "{ return world.work(orderNo); }";
const SIGNATURE = "(orderNo: string): Promise<string>";

/** Sources that export `pay`, without the word `async`. */
const FORMS: Record<string, string> = {
  "a function": `${TAG} export function pay${SIGNATURE} ${BODY}`,
  "a default export": `${TAG}\nexport default\nfunction pay${SIGNATURE} ${BODY}\nexport { pay };`,
  "a function expression": `${TAG} export const pay = function ${SIGNATURE} ${BODY};`,
  "an arrow function": `${TAG} export const pay = ${SIGNATURE} => world.work(orderNo);`,
  "a generic arrow function": `${TAG} export const pay = <T>(orderNo: T): Promise<string> => ${BODY};`,
  "an arrow function with one bare parameter": `${TAG} export const pay: ${SIGNATURE.replace("):", ") =>")} = orderNo => world.work(orderNo);`,
  "an arrow function right after `return`": `const make = () => { ${TAG}\nreturn(orderNo: string): Promise<string> => world.work(orderNo); }; export const pay = make();`,
  "an object's method": `export const { pay } = { ${TAG} pay${SIGNATURE} ${BODY} };`,
  "a static method": `class A { ${TAG} public static pay${SIGNATURE} ${BODY} } export const { pay } = A;`,
  "a private method": `class A { ${TAG} #pay${SIGNATURE} ${BODY} static pay(orderNo) { return new A().#pay(orderNo); } } export const { pay } = A;`,
  "a property": `class A { ${TAG} readonly pay = ${SIGNATURE} => world.work(orderNo); } export const { pay } = new A();`,
  "a reentrant function": `${TAG.replace("*/", "reentrant=true */")} export function pay${SIGNATURE} ${BODY}`,
};

for (const [form, source] of Object.entries(FORMS)) {
  test.serial(`${form} that returns a promise is locked until the promise settles`, async (t) => {
    const work = async (orderNo: string): Promise<string> => {
      await sleep(2);
      events.push(`${orderNo} ${held.has(`LOCK_typed_${orderNo}`)}`);
      return "done";
    };
    const { pay } = runWoven(source, { work }) as { pay: Work };
    t.is(await pay("a"), "done");
    t.deepEqual(events, ["acquire", "a true", "release"]);
  });
}

test.serial(
  "an error that a function throws synchronously rejects its promise, and the lock is released",
  async (t) => {
    const error = new Error("mine");
    const source = `${TAG} export function pay${SIGNATURE} { throw world.error; }`;
    const { pay } = runWoven(source, { error }) as { pay: Work };
    const promise = pay("a");
    t.is(await t.throwsAsync(promise), error);
    t.deepEqual(events, ["acquire", "release"]);
  },
);
