import { inspect } from "node:util";
import test from "ava";
import { LockError, LockUnreachableError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { createLocker } from "../../runtime/config/create-locker";
import { memoryStore } from "../../runtime/stores/memory";
import { Fleet } from "../support/fleet";

// The fields that a logger and a log in JSON receive besides the text.

const KEY = "LOCK_payOrder_1";

/** Waits in vain for a lock of another process, and resolves to the lines of the logger. */
async function linesWith(logFields?: "first" | "last"): Promise<readonly (readonly unknown[])[]> {
  const fleet = new Fleet();
  const lines: unknown[][] = [];
  const note = (...line: unknown[]): void => void lines.push(line);
  await fleet.acquireElsewhere(KEY, 60_000);
  const process = fleet.process({ logger: { debug: note, warn: note }, ...(logFields && { logFields }) });
  const call = process.call(KEY, { retryTimes: 1, waitTime: "1s" }, () => {}).catch(() => {});
  await fleet.clock.advance(2_000);
  await call;
  return lines;
}

test("a logger receives the text alone, the fields first as pino does, or last as winston does", async (t) => {
  for (const line of await linesWith()) t.is(line.length, 1);
  for (const order of ["first", "last"] as const) {
    const lines = await linesWith(order);
    t.is(lines.length, 2);
    for (const line of lines) {
      const [fields, text] = order === "first" ? line : line.toReversed();
      t.like(fields, { key: KEY, store: "default" });
      t.regex(String(text), /^LOCK_payOrder_1 \w{8} /);
      t.is(line.length, 2);
    }
  }
});

test("any other value of `logFields` is an error", (t) => {
  const logFields = "middle" as "first";
  t.throws(() => new Fleet().process({ logFields }), { code: "LOCK_BAD_OPTION" });
});

test("a timeout names the lock and its holder in fields, and in JSON", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60_000);
  const call = fleet.process().call(KEY, { retryTimes: 1, waitTime: "1s" }, () => {});
  const refused = t.throwsAsync<LockError>(call, { instanceOf: LockWaitTimeoutError });
  await fleet.clock.advance(2_000);
  const error = await refused;
  t.is(error?.key, KEY);
  t.is(typeof error?.holder?.storeValue, "string");
  const { code, key, holder, name } = JSON.parse(JSON.stringify(error)) as LockError;
  t.deepEqual([name, code, key], ["LockWaitTimeoutError", "LOCK_WAIT_TIME_OUT", KEY]);
  t.deepEqual(holder, error?.holder);
});

test("an error in JSON has the message of its cause, without credentials", (t) => {
  const cause = new Error("no route to redis://user:secret@host:6379");
  const json = JSON.stringify(new LockUnreachableError("the store did not reply", { cause }));
  t.false(json.includes("secret"));
  t.like(JSON.parse(json), { message: "the store did not reply", code: "LOCK_UNREACHABLE" });
  t.false("key" in new LockUnreachableError("the store did not reply"));
});

test("the default logger writes the text alone, whatever `logFields` says", (t) => {
  const lines: unknown[][] = [];
  const { warn } = console;
  console.warn = (...line: unknown[]) => void lines.push(line);
  try {
    createLocker({ store: memoryStore(), logFields: "first" }).logger.warn("text", { key: KEY });
  } finally {
    console.warn = warn;
  }
  t.deepEqual(lines, [["lockweave: text"]]);
});

test("a timeout error does not contain the value that another program wrote", async (t) => {
  const fleet = new Fleet();
  const secret = { key: KEY, requestId: "a secret", lockTimeMs: 60_000, fencing: false };
  await fleet.memory.acquire(secret, 1_000);
  const call = fleet.process().call(KEY, { retryTimes: 0 }, () => {});
  const error = await t.throwsAsync<LockError>(call, { instanceOf: LockWaitTimeoutError });
  t.false(inspect(error).includes(secret.requestId));
  t.false(JSON.stringify(error).includes(secret.requestId));
});

test("an extension that the store does not confirm rejects with the key of the lock", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { lockTime: "10s" });
  t.true(await lock.acquire());
  fleet.store.onRenew = () => new Promise(() => {});
  const extended = t.throwsAsync<LockError>(lock.extend("20s"), { instanceOf: LockUnreachableError });
  await fleet.clock.advance(12_000);
  t.is((await extended)?.key, KEY);
  await lock.release().catch(() => {});
});
