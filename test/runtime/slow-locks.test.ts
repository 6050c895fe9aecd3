import test from "ava";
import { configure, lockKey, memoryStore, obtain, redisStore, shutdown, withLock } from "../../runtime";
import { createLocker } from "../../runtime/config/create-locker";
import { revokedFrom } from "../../runtime/stores/value";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";

let server: RedisServer;
let warnings: string[] = [];
const logger = { warn: (message: string): void => void warnings.push(message) };

test.before(async () => {
  server = await startRedis();
});
test.beforeEach(() => {
  warnings = [];
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(() => server.stop());

const slow = (): string[] => warnings.filter((message) => / has (?:waited|held) /.test(message));

test.serial("warnAfter logs a long wait, with the holder of the lock, and a long hold", async (t) => {
  configure({ woven: false, store: memoryStore(), logger, warnAfter: "50ms" });
  const key = lockKey("pay", 1);
  const held = await obtain(key);
  const waiting = withLock(key, { waitTime: "60s" }, () => "done");
  await until(() => slow().length === 2);
  const warningOf = (word: string): string =>
    slow().find((message) => message.includes(` has ${word} `)) ?? "";
  t.regex(warningOf("held"), /^LOCK_pay_1 [0-9a-f]{8} has held the lock for [\d.]+ m?s$/);
  t.regex(
    warningOf("waited"),
    /^LOCK_pay_1 [0-9a-f]{8} has waited for the lock for [\d.]+ m?s: it is held by this process here, for [\d.]+ m?s$/,
  );
  await held.release();
  t.is(await waiting, "done");
});

test.serial("the warning about a long wait names the process number of another holder", async (t) => {
  const other = createLocker({ store: redisStore(server.client()), woven: false });
  configure({ woven: false, redis: server.url, logger, warnAfter: "50ms" });
  const key = lockKey("pay", 2);
  const admin = server.client();
  const requestId = other.newRequestId();
  await admin.set(key, requestId, "PX", 60_000);
  const ending = new AbortController();
  const waiting = withLock(key, { waitTime: "60s", signal: ending.signal }, () => "done");
  await until(() => slow().length === 1);
  t.true(slow()[0]?.endsWith(`: it is held by process ${requestId.slice(0, 12)}`), slow()[0]);
  ending.abort();
  await t.throwsAsync(waiting, { any: true });
  await other.store.close?.();
});

test.serial(
  "the warning about a long wait does not contain the value that another program wrote",
  async (t) => {
    configure({ woven: false, redis: server.url, logger, warnAfter: "50ms" });
    const admin = server.client();
    const holders = { pay_7: "s3cret", pay_8: revokedFrom("0123456789abcdef0123456789abcdef") };
    for (const [name, value] of Object.entries(holders)) await admin.set(`LOCK_${name}`, value, "PX", 60_000);
    const ending = new AbortController();
    const waiting = Object.keys(holders).map((name) =>
      withLock(`LOCK_${name}`, { waitTime: "60s", signal: ending.signal }, () => "done"),
    );
    await until(() => slow().length === 2);
    t.deepEqual(
      slow()
        .map((message) => `${message.split(" ")[0]}${message.slice(message.lastIndexOf(":"))}`)
        .toSorted(),
      [
        "LOCK_pay_7: it is held by another program",
        "LOCK_pay_8: it is held by a process whose lock was revoked",
      ],
    );
    ending.abort();
    for (const one of waiting) await t.throwsAsync(one, { any: true });
  },
);

test.serial("each configuration logs its own slow locks, even while an old one drains", async (t) => {
  const drained: string[] = [];
  const former = { warn: (message: string): void => void drained.push(message) };
  configure({ woven: false, store: memoryStore(), logger: former, warnAfter: "50ms" });
  const before = await obtain(lockKey("pay", 4));
  const ended = shutdown({ patience: "1m" });
  configure({ woven: false, store: memoryStore(), logger, warnAfter: "50ms" });
  const after = await obtain(lockKey("pay", 5));
  await until(() => drained.length > 0 && slow().length > 0);
  const late = await obtain(lockKey("pay", 6));
  await until(() => slow().length === 2);
  await before.release();
  await ended;
  await Promise.all([after.release(), late.release()]);
  t.deepEqual(
    [drained, slow()].map((messages) => messages.map((message) => message.split(" ")[0])),
    [[lockKey("pay", 4)], [lockKey("pay", 5), lockKey("pay", 6)]],
  );
});

test.serial("logs nothing for fast locks, nor without warnAfter", async (t) => {
  configure({ woven: false, store: memoryStore(), logger, warnAfter: "1h" });
  await withLock(lockKey("pay", 3), {}, () => "done");
  await shutdown();
  configure({ woven: false, store: memoryStore(), logger });
  await withLock(lockKey("pay", 3), {}, () => "done");
  t.deepEqual(slow(), []);
});

test.serial("configure() rejects an invalid warnAfter, and can be called again", (t) => {
  t.throws(() => configure({ woven: false, store: memoryStore(), warnAfter: "soon" as never }), {
    message: /warnAfter/,
  });
  t.notThrows(() => configure({ woven: false, store: memoryStore() }));
});
