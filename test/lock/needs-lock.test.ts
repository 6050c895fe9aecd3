import { AsyncResource } from "node:async_hooks";
import test, { type ExecutionContext } from "ava";
import { transformSync } from "esbuild";
import ts from "typescript";
import * as runtime from "../../runtime";
import { lockKey, LockKeyError, LockLostError, LockNotHeldError, obtain, withLock } from "../../runtime";
import { startRedis, type RedisServer } from "../support/redis-server";
import { runWoven } from "../transformer/weave/woven-module";

// Tags and calls by hand on the real runtime, in memory and on Redis.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
  const stores = { redis: server.client() };
  runtime.configure({ store: runtime.memoryStore(), stores, logger: { warn: () => {} } }, "woven");
});

test.after.always(async () => {
  await runtime.shutdown();
  await server.stop();
});

type Name = "book" | "move" | "outer" | "pay" | "payAll" | "post" | "run";
type Ledger = Readonly<Partial<Record<Name, (...values: readonly unknown[]) => Promise<unknown>>>>;

const byEsbuild = (code: string): string => transformSync(code, { loader: "ts", target: "es2015" }).code;

/** The form for current engines, and the forms for older ones. */
const FORMS: Readonly<Record<string, [target: ts.ScriptTarget, lower?: (code: string) => string]>> = {
  ES2022: [ts.ScriptTarget.ES2022],
  ES2015: [ts.ScriptTarget.ES2015],
  "ES2015, by esbuild": [ts.ScriptTarget.ES2022, byEsbuild],
};

const NEED = "/** @needsLock businessFlag=order keyName=id";
const LOCK = "/** @redisLock businessFlag=order keyName=id";

function ledger(source: string, world: object = {}, form = FORMS["ES2022"]): Ledger {
  const [target, lower] = form ?? [];
  return runWoven(source, world, target, lower);
}

/** Posts to the ledger. `post` needs the lock of an order, and `pay` holds it. */
function orders(attributes = "", ofNeed = attributes, body = "return await post(id, ...rest);"): Ledger {
  return ledger(`
    ${NEED} ${ofNeed} */ export async function post(id) { return "posted " + id; }
    ${LOCK} ${attributes} */ export async function pay(id, ...rest) { ${body} }`);
}

async function isNotHeld(
  t: ExecutionContext,
  call: () => unknown,
  message?: RegExp,
): Promise<LockNotHeldError> {
  const error = await t.throwsAsync(async () => await call(), {
    instanceOf: LockNotHeldError,
    code: "LOCK_NOT_HELD",
    ...(message !== undefined && { message }),
  });
  return error;
}

for (const store of ["default", "redis"]) {
  const ofStore = `store=${store}`;

  for (const [name, form] of Object.entries(FORMS)) {
    test(`a body may call functions that need its lock, and no other code may (${store}, ${name})`, async (t) => {
      const { pay, post, both } = ledger(
        `${NEED} ${ofStore} */ export const post = async (id) => "posted " + id;
        ${LOCK} ${ofStore} lockTime=5m */ export async function pay(id, wait) {
          const first = await post(id);
          await wait;
          return [first, await post(id)];
        }
        export const both = (a, b) => Promise.allSettled([pay(a), post(a), pay(b), post(b)]);`,
        {},
        form,
      ) as Record<"pay" | "post" | "both", (...values: unknown[]) => Promise<never>>;
      t.deepEqual(await pay("A1", Promise.resolve()), ["posted A1", "posted A1"] as never);
      await isNotHeld(t, () => post("A1"));
      const [paid, unpaid, other, alone] = (await both("A2", "A3")) as PromiseSettledResult<unknown>[];
      t.is(paid?.status, "fulfilled");
      t.is(other?.status, "fulfilled");
      for (const one of [unpaid, alone])
        t.true(one?.status === "rejected" && one.reason instanceof LockNotHeldError);
      await isNotHeld(t, () => post("A2"));
    });
  }

  test(`the body of withLock() holds the lock, and the scope of obtain() does not (${store})`, async (t) => {
    const { post } = orders(ofStore);
    const key = lockKey("order", "B1");
    t.is(await withLock(key, { store }, () => post?.("B1")), "posted B1");
    t.is(
      await withLock(key, { store }, async (lock) => (lock.assertHeld(), await post?.("B1"))),
      "posted B1",
    );
    const lock = await obtain(key, { store });
    await isNotHeld(t, () => post?.("B1"), /obtain\(\)/);
    await lock.release();
    await withLock(lockKey("order", "B2"), { store }, () => isNotHeld(t, () => post?.("B1")));
  });

  test(`a lost lock is not held, and the error says why (${store})`, async (t) => {
    const { post } = orders(ofStore);
    const key = lockKey("order", "C1");
    await withLock(key, { store }, async (lock) => {
      const isLost = new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
      await runtime.forceRelease(key, { store });
      await isLost;
      const error = await isNotHeld(t, () => post?.("C1"), /had lost or released it/);
      t.true(error.cause instanceof LockLostError);
      t.is(error.key, key);
      t.is(error.site, "post");
    });
  });
}

test("a caller whose lock was granted, but whose body has not begun, does not count for others", async (t) => {
  const { post, pay, payAll } = ledger(`${NEED} */ export async function post(id) { return id; }
    ${LOCK} */ export async function pay(id) { return await post(id); }
    /** @redisLock businessFlag=order keyName=ids each=true */ export async function payAll(ids) { return ids; }`);
  const refused: Promise<unknown>[] = [];
  const others = (): void => void refused.push(isNotHeld(t, () => post?.("P1")));
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 30; turn += 1) {
      others();
      await Promise.resolve();
    }
  };
  await Promise.all([
    pay?.("P1"),
    turns(),
    withLock(lockKey("order", "P1"), () => {}),
    payAll?.(["P1", "P2"]),
    turns(),
  ]);
  await Promise.all(refused);
});

test("work that outlives the body does not hold the lock", async (t) => {
  let detached: Promise<unknown> | undefined;
  let end = (): void => {};
  const { pay } = ledger(
    `${NEED} */ export async function post(id) { return "posted " + id; }
     ${LOCK} */ export async function pay(id) { world.start(async () => { await world.end; return await post(id); }); }`,
    {
      end: new Promise<void>((resolve) => (end = resolve)),
      start: (work: () => Promise<unknown>) => void (detached = work()),
    },
  );
  await pay?.("D1");
  end();
  await isNotHeld(
    t,
    () => detached,
    /`?pay`? had lost or released it: it was released. Fix: wait for the call of post/,
  );
});

test("the error names the key, the function, and the fix", async (t) => {
  const { post } = orders("store=redis", "");
  await isNotHeld(
    t,
    () => post?.("E1"),
    /^LOCK_order_E1 \(post\): the function needs this lock, but its caller does not hold it\. Fix: call post inside a function with @redisLock on the same key, or inside withLock\(\)\./,
  );
});

test("the store, the flag, and the values of the key must be equal", async (t) => {
  await isNotHeld(t, () => orders("store=redis", "").pay?.("F1"));
  await isNotHeld(t, () => orders("", "store=redis").pay?.("F1"));
  await isNotHeld(t, () => orders("", "", 'return await post(id + "0");').pay?.("F1"));
  t.is(await orders("", "", "return await post(Number(id));").pay?.("7"), "posted 7");
  const other = ledger(`${NEED} */ async function post(id) {}
    /** @redisLock businessFlag=orders keyName=id */ export async function pay(id) { await post(id); }`);
  await isNotHeld(t, () => other.pay?.("F1"));
  const whole = ledger(
    '/** @needsLock key="mutex:${id}" */ async function post(id) { return id; }\n' +
      '/** @redisLock key="mutex:${id}" */ export async function pay(id) { return await post(id); }',
  );
  t.is(await whole.pay?.("F1"), "F1");
});

test("one key of `each` suffices", async (t) => {
  const { payAll } = ledger(`${NEED} */ async function post(id) { return id; }
    /** @redisLock businessFlag=order keyName=ids each=true */
    export async function payAll(ids, wanted) { return await post(wanted); }`);
  t.is(await payAll?.(["G2", "G1"], "G1"), "G1");
  t.is(await payAll?.(["G2", "G1"], "G2"), "G2");
  await isNotHeld(t, () => payAll?.(["G2", "G1"], "G3"));
  const keys = ["G1", "G2"].map((id) => lockKey("order", id));
  const { post } = orders();
  t.is(await withLock(keys, () => post?.("G2")), "posted G2");
});

test("a write lock satisfies @needsLock with mode=read, and only an exclusive lock satisfies it without a mode", async (t) => {
  t.is(await orders("", "mode=read").pay?.("H1"), "posted H1");
  t.is(await orders("mode=write", "mode=write").pay?.("H1"), "posted H1");
  t.is(await orders("mode=read", "mode=read").pay?.("H1"), "posted H1");
  await isNotHeld(t, () => orders("mode=read", "").pay?.("H1"), /but pay shares it with mode=read\. Fix/);
  await isNotHeld(t, () => orders("permits=2", "").pay?.("H2"), /shares it with permits=2/);
  await isNotHeld(t, () => orders("permits=2", "mode=read").pay?.("H2"));
});

test("a lock whose `when` is false is not held", async (t) => {
  const { pay } = orders('when="rest.length > 0"', "");
  t.is(await pay?.("I1", true), "posted I1");
  await isNotHeld(t, () => pay?.("I1"));
});

test("nested bodies hold all their locks, even if one enters a reentrant lock again", async (t) => {
  const { outer } = ledger(`${NEED} */ async function post(id) { return id; }
    ${LOCK} reentrant=true */ async function inner(id) { return await post(id); }
    /** @redisLock businessFlag=customer keyName=customer */ async function middle(customer, id) {
      return [await post(id), await inner(id), await post(id)];
    }
    ${LOCK} reentrant=true */ export async function outer(id) { return await middle("c", id); }`);
  t.deepEqual(await outer?.("J1"), ["J1", "J1", "J1"]);
});

test("a reentrant call inside a non-reentrant lock on the same key still waits for it", async (t) => {
  const { pay } = ledger(`${NEED} */ async function post(id) {}
    ${LOCK} retryTimes=0 reentrant=true */ async function again(id) {}
    ${LOCK} */ export async function pay(id) { await post(id); await again(id); }`);
  await t.throwsAsync(async () => await pay?.("K1"), { instanceOf: runtime.LockWaitTimeoutError });
});

test("a caller's own code after the call does not hold the lock, and neither do siblings", async (t) => {
  const { post, pay } = orders();
  const before = AsyncResource.bind(async () => await post?.("L1"));
  await pay?.("L1");
  await isNotHeld(t, () => post?.("L1"));
  await withLock(lockKey("order", "L1"), async () => {
    await isNotHeld(t, before);
    t.is(await post?.("L1"), "posted L1");
  });
});

test("a generator may call functions that need its lock, before and after each yield", async (t) => {
  const { payAll, post } = ledger(`${NEED} */ export async function post(id) { return id; }
    ${LOCK} */ export async function* payAll(id) { yield await post(id); yield await post(id); }`) as never as {
    payAll(id: string): AsyncGenerator;
    post(id: string): Promise<unknown>;
  };
  const seen: unknown[] = [];
  for await (const one of payAll("M1")) seen.push(one);
  t.deepEqual(seen, ["M1", "M1"]);
  await isNotHeld(t, () => post("M1"));
});

test("synchronous functions, methods, and arrow functions are checked", async (t) => {
  const { run } = ledger(`
    ${NEED} */ function sync(id) { "use strict"; return id; }
    ${NEED} */ const arrow = (id) => ({ id });
    ${NEED} */ function* steps(id) { yield id; }
    class Ledger {
      #tenant = "T";
      /** @needsLock businessFlag=order keyName=this.#tenant */ own() { return this.#tenant; }
      ${NEED} */ static total = ({ id }) => id;
    }
    export async function run(id, withLock) {
      const all = [() => sync(id), () => arrow(id).id, () => [...steps(id)][0], () => Ledger.total({ id }), () => new Ledger().own()];
      return all.map((one) => { try { return one(); } catch (error) { return error.code; } });
    }`);
  t.deepEqual(
    await run?.("T"),
    Array.from({ length: 5 }, () => "LOCK_NOT_HELD"),
  );
  t.deepEqual(await withLock(lockKey("order", "T"), () => run?.("T")), ["T", "T", "T", "T", "T"]);
});

test("a function with both tags is checked before it acquires its own lock", async (t) => {
  const { book } = ledger(`/** Books.
     * @needsLock businessFlag=order keyName=id
     * @redisLock businessFlag=account keyName=account
     */ export const book = async (id, account) => account;`);
  await isNotHeld(t, () => book?.("N1", "a"), /LOCK_order_N1 \(book\)/);
  t.is(await withLock(lockKey("order", "N1"), () => book?.("N1", "a")), "a");
});

test("a function with several @needsLock tags needs all of their locks", async (t) => {
  const { move } = ledger(`/** @needsLock businessFlag=order keyName=from
     * @needsLock businessFlag=order keyName=to */ export function move(from, to) { return "moved"; }`);
  const [one, two] = ["O1", "O2"].map((id) => lockKey("order", id)) as [string, string];
  await withLock(one, () => isNotHeld(t, () => move?.("O1", "O2"), /LOCK_order_O2/));
  t.is(await withLock([one, two], () => move?.("O1", "O2")), "moved");
});

test("@needsLock throws LockKeyError if a part of the key is undefined", async (t) => {
  const error = await t.throwsAsync(async () => await orders().post?.(undefined), {
    instanceOf: LockKeyError,
  });
  t.regex(error.message, /^post: /);
});
