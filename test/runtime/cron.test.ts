import test from "ava";
import { runCoordinator } from "../../runtime/cron";
import { configure, memoryStore, shutdown, type Configuration } from "../../runtime";
import { freePort, startRedis, type RedisServer } from "../support/redis-server";

// test/hosts/schedulers/schedulers.test.ts runs the coordinator with node-cron itself.

let server: RedisServer;
test.before(async () => {
  server = await startRedis();
});
test.afterEach.always(() => shutdown());
test.after.always(() => server.stop());

const LEASE_MS = 600_000;
const TIME = "2026-01-31T03:00:00.000Z";

/** Configures locks in the server, and returns the key of a firing of the test's own. */
function start(t: { readonly title: string }, configuration: Omit<Configuration, "redis"> = {}): string {
  configure({ redis: server.url, woven: false, ...configuration });
  return `${t.title.replaceAll(/\W/g, "")}:${TIME}`;
}

test.serial("only one of many callers runs a firing, and the key lasts for the lease", async (t) => {
  const firing = start(t);
  const machines = Array.from({ length: 20 }, () => runCoordinator());
  const answers = await Promise.all(machines.map((each) => each.shouldRun(firing, LEASE_MS)));
  t.is(answers.filter(Boolean).length, 1);
  const left = await server.client().pttl(`LOCK_cron_${firing}`);
  t.true(left > LEASE_MS / 2 && left <= LEASE_MS, String(left));
});

test.serial("a machine with a late clock does not run a firing again after the task has ended", async (t) => {
  const firing = start(t);
  t.true(await runCoordinator().shouldRun(firing, LEASE_MS));
  await shutdown();
  start(t);
  t.false(await runCoordinator().shouldRun(firing, LEASE_MS));
  t.true(await runCoordinator().shouldRun(firing.replace("03:00", "04:00"), LEASE_MS));
});

test.serial("a firing does not run if another caller holds its key", async (t) => {
  const firing = start(t);
  await server.client().set(`LOCK_cron_${firing}`, "another program", "PX", LEASE_MS);
  t.false(await runCoordinator().shouldRun(firing, LEASE_MS));
});

test.serial("the defaults of configure() change neither the lease nor the result", async (t) => {
  const defaults = {
    lockTime: "100ms",
    lockAtLeast: "50ms",
    holdAtMost: "200ms",
    onLost: "warn",
    release: "background",
    fencing: true,
    retryTimes: 5,
    waitTime: "1h",
  } as const;
  const firing = start(t, { defaults });
  const coordinator = runCoordinator();
  t.deepEqual(
    [await coordinator.shouldRun(firing, LEASE_MS), await coordinator.shouldRun(firing, LEASE_MS)],
    [true, false],
  );
  t.true((await server.client().pttl(`LOCK_cron_${firing}`)) > LEASE_MS / 2);
});

test.serial("the flag and the store are those of the options", async (t) => {
  const firing = start(t, { stores: { jobs: memoryStore() } });
  const coordinator = runCoordinator({ businessFlag: "billing", store: "jobs" });
  t.true(await coordinator.shouldRun(firing, LEASE_MS));
  t.false(await coordinator.shouldRun(firing, LEASE_MS));
  t.true(await runCoordinator({ businessFlag: "billing" }).shouldRun(firing, LEASE_MS));
  t.is(await server.client().exists(`LOCK_billing_${firing}`), 1);
  await t.throwsAsync(runCoordinator({ store: "other" }).shouldRun(firing, LEASE_MS), {
    message: /`other`/,
  });
});

test.serial("rejects if the store does not answer, so node-cron skips the firing", async (t) => {
  configure({
    redis: `redis://127.0.0.1:${await freePort()}`,
    commandTimeout: "50ms",
    logger: { warn() {} },
    woven: false,
  });
  await t.throwsAsync(runCoordinator().shouldRun(`down:${TIME}`, LEASE_MS), { code: "LOCK_UNREACHABLE" });
});

test.serial("rejects after shutdown()", async (t) => {
  const firing = start(t);
  await shutdown();
  await t.throwsAsync(runCoordinator().shouldRun(firing, LEASE_MS), { code: "LOCK_CLOSED" });
});

for (const lease of [0, 99, Number.NaN, Infinity, 86_400_001, "30s"] as number[]) {
  test.serial(`a distributedLease of ${lease} is an error that names the option`, async (t) => {
    const firing = start(t);
    await t.throwsAsync(runCoordinator().shouldRun(firing, lease), {
      code: "LOCK_BAD_OPTION",
      message: /`distributedLease`.* got .*Fix: /,
    });
    t.is(await server.client().exists(`LOCK_cron_${firing}`), 0);
  });
}

test.serial("a fraction of a millisecond makes the lease longer", async (t) => {
  const firing = start(t);
  t.true(await runCoordinator().shouldRun(firing, 599_999.5));
});

test("an unknown option and an invalid flag are errors", (t) => {
  t.throws(() => runCoordinator({ stores: "jobs" } as object), {
    code: "LOCK_BAD_OPTION",
    message: "runCoordinator() has no option `stores`. The options are businessFlag, store, replicas",
  });
  t.throws(() => runCoordinator({ businessFlag: "" }), { code: "LOCK_BAD_KEY" });
  for (const [options, type] of [
    [null, "null"],
    ["jobs", "string"],
  ] as unknown as [object, string][]) {
    t.throws(() => runCoordinator(options), {
      code: "LOCK_BAD_OPTION",
      message: `Expected runCoordinator() or runCoordinator({ businessFlag: "cron" }), got ${type}`,
    });
  }
});
