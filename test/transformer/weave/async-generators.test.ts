import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { transformSync } from "esbuild";
import ts from "typescript";
import * as runtime from "../../../runtime";
import { configureObserved, events, held, runWoven } from "./woven-module";

test.before(configureObserved);
test.beforeEach(() => {
  events.length = 0;
});
test.after.always(() => runtime.shutdown());

type Stream = (...values: unknown[]) => AsyncGenerator<unknown, unknown, unknown>;

const byEsbuild = (code: string): string => transformSync(code, { loader: "ts", target: "es2017" }).code;

/** The native form, and the forms for older targets. */
const TARGETS: Record<string, [target: ts.ScriptTarget, lower?: (code: string) => string]> = {
  ES2022: [ts.ScriptTarget.ES2022],
  ES2017: [ts.ScriptTarget.ES2017],
  "ES2017, by esbuild": [ts.ScriptTarget.ES2022, byEsbuild],
};

for (const [name, compiled] of Object.entries(TARGETS)) {
  const generator = (body: string, world: object = {}, attributes = ""): Stream =>
    (
      runWoven(
        `/** @redisLock businessFlag=stream ${attributes} */ export async function* stream(id) { ${body} }`,
        { events, ...world },
        ...compiled,
      ) as { stream: Stream }
    ).stream;

  test.serial(`a generator is locked from its first \`next()\` to its end (${name})`, async (t) => {
    const stream = generator("world.events.push('begin'); yield 1; yield 2; world.events.push('end');")();
    await sleep(5);
    t.deepEqual(events, []);
    t.deepEqual(await stream.next(), { value: 1, done: false });
    t.deepEqual([...held], ["LOCK_stream"]);
    t.deepEqual(await stream.next(), { value: 2, done: false });
    t.deepEqual(await stream.next(), { value: undefined, done: true });
    t.deepEqual(events, ["acquire", "begin", "end", "release"]);
    t.deepEqual(await stream.next(), { value: undefined, done: true });
    t.deepEqual(events, ["acquire", "begin", "end", "release"]);
  });

  test.serial(`the lock is released when a consumer leaves its loop early (${name})`, async (t) => {
    const stream = generator("try { yield 1; yield 2; } finally { world.events.push('finally'); }");
    for await (const value of stream()) {
      t.is(value, 1);
      t.deepEqual([...held], ["LOCK_stream"]);
      break;
    }
    t.deepEqual(events, ["acquire", "finally", "release"]);
  });

  test.serial(`\`return()\` before the first \`next()\` acquires no lock (${name})`, async (t) => {
    const stream = generator("yield 1;")();
    t.deepEqual(await stream.return("early"), { value: "early", done: true });
    t.deepEqual(await stream.next(), { value: undefined, done: true });
    t.deepEqual(events, []);
  });

  test.serial(`\`return()\` resolves to its value, and the lock is released (${name})`, async (t) => {
    const stream = generator("yield 1;")();
    await stream.next();
    const { value, done } = await stream.return(Promise.resolve("early"));
    t.deepEqual([value, done], [name.endsWith("esbuild") ? undefined : "early", true]); // esbuild loses the value even without a lock.
    t.deepEqual(events, ["acquire", "release"]);
  });

  test.serial(
    `\`throw()\` rejects with its error unchanged, and the lock is released (${name})`,
    async (t) => {
      for (const error of [new Error("mine"), undefined]) {
        events.length = 0;
        const stream = generator("yield 1;")();
        await stream.next();
        const caught: unknown = await stream.throw(error).then(
          () => "nothing",
          (reason: unknown) => reason,
        );
        t.is(caught, error);
        t.deepEqual(events, ["acquire", "release"]);
        t.deepEqual(await stream.next(), { value: undefined, done: true });
      }
    },
  );

  test.serial(`a generator that catches the error of \`throw()\` keeps its lock (${name})`, async (t) => {
    const stream = generator("try { yield 1; } catch (error) { yield error; }")();
    await stream.next();
    t.deepEqual(await stream.throw("mine"), { value: "mine", done: false });
    t.deepEqual(events, ["acquire"]);
    await stream.next();
    t.deepEqual(events, ["acquire", "release"]);
  });

  test.serial(`the lock is held until a yielded or returned promise settles (${name})`, async (t) => {
    const work = async (): Promise<string> => {
      await sleep(5);
      events.push(`done ${held.has("LOCK_stream")}`);
      return "done";
    };
    const stream = generator("yield world.work(); return world.work();", { work })();
    t.deepEqual(await stream.next(), { value: "done", done: false });
    t.deepEqual(await stream.next(), { value: "done", done: true });
    t.deepEqual(events, ["acquire", "done true", "done true", "release"]);
  });

  test.serial(`the value of \`next()\` reaches the body, even through \`yield*\` (${name})`, async (t) => {
    const stream = generator(`
      async function* inner() { try { return ["inner", yield "a"]; } finally { world.events.push("inner") } }
      return yield* inner();`)();
    t.deepEqual(await stream.next(), { value: "a", done: false });
    t.deepEqual(await stream.next("b"), { value: ["inner", "b"], done: true });
    t.deepEqual(events, ["acquire", "inner", "release"]);
  });

  test.serial(`onFailure=skip ends the generator before it begins (${name})`, async (t) => {
    const attributes = "retryTimes=1 waitTime=20 onFailure=skip";
    const stream = generator("world.events.push('begin'); yield 1;", {}, attributes);
    const holder = stream();
    await holder.next();
    t.deepEqual(await stream().next(), { value: undefined, done: true });
    await holder.return(undefined);
    t.deepEqual(events, ["acquire", "begin", "release"]);
  });

  test.serial(`\`this\`, \`arguments\`, and the key are those of the method (${name})`, async (t) => {
    const { Orders } = runWoven(
      `export class Orders {
        tenant = "t1";
        /** @redisLock businessFlag=method keyName=this.tenant,id */
        async *stream({ id }, ...rest) { yield this.tenant; yield arguments.length; yield* rest; }
      }`,
      {},
      ...compiled,
    ) as { Orders: new () => { stream: Stream } };
    const all: unknown[] = [];
    for await (const value of new Orders().stream({ id: 7 }, "x", "y")) all.push(value, ...held);
    const key = "LOCK_method_t1,7";
    t.deepEqual(all, ["t1", key, 3, key, "x", key, "y", key]);
    t.is(held.size, 0);
  });
}
