import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { fenceOf } from "../support/auxiliary-keys";
import { Arena, type Contender } from "../support/arena";
import { startRedis, type RedisServer } from "../support/redis-server";
import { judge } from "../support/sections";
import { until } from "../support/until";

// Mutual exclusion between real processes while holders die, freeze, and are cut off.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** Several processes are compiled as they start, and may get no CPU for a long time. */
const STARTED_BY_MS = 180_000;

const LOCK_TIME_MS = 500;
const LONGER_THAN_THE_LOCK_MS = 1.6 * LOCK_TIME_MS;

/** Each fault strikes a process whose body has just started, and ends when the process has recovered. */
const FAULTS: Record<string, (victim: Contender) => Promise<void>> = {
  killed: (victim) => victim.kill(),
  async stopped({ child }) {
    child.signal("SIGSTOP");
    await pause(LONGER_THAN_THE_LOCK_MS);
    child.signal("SIGCONT");
  },
  async blocked({ child }) {
    child.tell("block");
    await pause(LONGER_THAN_THE_LOCK_MS);
  },
  async reset({ proxy }) {
    proxy.reset();
  },
  async "black-holed"({ proxy }) {
    proxy.blackHole();
    await pause(LONGER_THAN_THE_LOCK_MS);
    proxy.heal();
  },
};

test("no two bodies ever trust the same lock at once, whatever happens to their processes", async (t) => {
  t.timeout(STARTED_BY_MS);
  const watcher = server.client();
  const key = "LOCK_war";
  const arena = new Arena(server, { key, callers: 8, lockTimeMs: LOCK_TIME_MS, restMs: 0 });
  t.teardown(() => arena.clear());
  const alive = await Promise.all([arena.add(), arena.add(), arena.add(), arena.add()]);
  for (const [name, strike] of [...Object.entries(FAULTS), ...Object.entries(FAULTS)]) {
    const victim = alive.shift();
    if (victim === undefined) throw new Error("no process is left");
    await victim.inLongBody();
    const before = arena.sections.length;
    await strike(victim);
    await until(() => arena.sections.length > before); // Other bodies still enter.
    alive.push(name === "killed" ? await arena.add() : victim);
  }
  t.deepEqual(await arena.end(), ["0", "0", "0", "0"]);

  const { sections, overlaps, signaledBefore, noticedOnWaking, unannounced, fallenTokens } = judge(
    arena.sections,
  );
  const announced = `${signaledBefore} announced by the signal, ${noticedOnWaking} noticed on waking`;
  t.log(`${sections} sections, ${overlaps} overlaps: ${announced}, ${unannounced.length} unannounced`);
  t.deepEqual(unannounced, []);
  t.deepEqual(fallenTokens, []);
  t.false(arena.sections.some(({ missedSignal }) => missedSignal));
  t.true(overlaps > 0, "without an overlap, nothing was tested");
  t.deepEqual(new Set(arena.failures), new Set(["LOCK_LOST"]), "only callers that lost the lock fail");
  await until(async () => (await watcher.keys(`*${key}*`)).join() === fenceOf(key));
});
