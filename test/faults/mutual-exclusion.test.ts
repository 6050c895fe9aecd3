import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { fenceOf } from "../support/auxiliary-keys";
import { Arena } from "../support/arena";
import { monotonicMs } from "../support/monotonic";
import { startRedis, type RedisServer } from "../support/redis-server";
import { judge, type Section } from "../support/sections";
import { until } from "../support/until";

// Mutual exclusion between real processes without faults.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** Several processes are compiled as they start, and may get no CPU for a long time. */
const STARTED_BY_MS = 300_000;

/** So long that no lock is lost, however slow the machine is. */
const LOCK_TIME_MS = 20_000;

test("callers of 4 processes enter one at a time, all of them enter, and nothing is left", async (t) => {
  t.timeout(STARTED_BY_MS);
  const watcher = server.client();
  const key = "LOCK_peace";
  const arena = new Arena(server, { key, callers: 8, lockTimeMs: LOCK_TIME_MS, restMs: 0 });
  t.teardown(() => arena.clear());
  const contenders = await Promise.all([arena.add(), arena.add(), arena.add(), arena.add()]);
  await pause(5_000);
  await until(() => contenders.every(({ sections }) => sections.size > 8));
  t.deepEqual(await arena.end(), ["0", "0", "0", "0"]);
  const verdict = judge(arena.sections);
  t.log(`${verdict.sections} sections, ${verdict.overlaps} overlaps`);
  t.is(verdict.overlaps, 0, verdict.unannounced.join("\n"));
  t.deepEqual(verdict.fallenTokens, []);
  t.deepEqual(arena.failures, []);
  t.deepEqual(await watcher.keys(`*${key}*`), [fenceOf(key)]);
});

test("a plain SET NX PX of another program excludes Lockweave and is excluded by it", async (t) => {
  t.timeout(STARTED_BY_MS);
  const foreigner = server.client();
  const key = "LOCK_foreign";
  // With rests, because a queue that is never empty would not let another program in.
  const arena = new Arena(server, { key, callers: 2, lockTimeMs: LOCK_TIME_MS, restMs: 20 });
  t.teardown(() => arena.clear());
  await Promise.all([arena.add(), arena.add()]);
  const sections: Section[] = [];
  const endsAt = monotonicMs() + 2_000;
  while (monotonicMs() < endsAt || sections.length === 0 || arena.sections.length < 5) {
    if (monotonicMs() > endsAt + STARTED_BY_MS) throw new Error("one of them never gets the lock");
    if ((await foreigner.set(key, "mine", "PX", LOCK_TIME_MS, "NX")) === null) {
      await pause(1);
      continue;
    }
    const enteredAt = monotonicMs();
    await pause(3);
    const name = `foreigner ${sections.length}`;
    sections.push({ name, enteredAt, leftAt: monotonicMs(), believedUntil: Infinity });
    await foreigner.del(key);
    await pause(5);
  }
  t.deepEqual(await arena.end(), ["0", "0"]);
  const verdict = judge([...sections, ...arena.sections]);
  t.log(`${verdict.sections} sections, ${sections.length} of them foreign, ${verdict.overlaps} overlaps`);
  t.is(verdict.overlaps, 0, verdict.unannounced.join("\n"));
  await until(async () => (await foreigner.exists(key)) === 0);
});
