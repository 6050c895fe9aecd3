import test, { type ExecutionContext } from "ava";
import { startChild } from "../support/child";
import { LOCK_SERVER, startLockServer } from "../support/lock-server";
import { until } from "../support/until";
import type { WaitersConfiguration, WaitersReport } from "./children/waiters";

// A thousand callers in one process wait and never get the lock. They must leave nothing in the process or in the server.

const CALLERS = 1_000;

/** Redis: the application's client, and one for wake-ups. PostgreSQL: that of the application's pool, two for statements, and one for wake-ups. */
const CONNECTIONS = LOCK_SERVER === "Redis" ? 2 : 4;

async function waitInVain(t: ExecutionContext, keys: readonly string[]): Promise<void> {
  const server = await startLockServer();
  t.teardown(() => server.stop());
  const held = [...new Set(keys)];
  await server.hold(held);

  const configuration: WaitersConfiguration = { target: server.target(), keys, connections: CONNECTIONS };
  const child = startChild<WaitersReport>("waiters.ts", configuration);
  t.teardown(() => child.kill());
  const before = await child.reported(({ event }) => event === "before");
  const { ends } = await child.reported(({ event }) => event === "waited");
  // On a busy machine, the last try of a caller may get no answer in time.
  const { LOCK_WAIT_TIME_OUT: timedOut = 0, LOCK_UNREACHABLE: unanswered = 0 } = ends;
  t.is(timedOut + unanswered, CALLERS, JSON.stringify(ends));
  t.true(timedOut > 0);

  // Nobody awaits the commands that leave the queue.
  await until(async () => (await server.keys()).length === held.length);
  t.deepEqual((await server.keys()).toSorted(), held.toSorted(), "no queue is left");
  t.is(await server.connections(), CONNECTIONS);
  t.is((await server.channels?.()) ?? 1, 1);
  child.tell("go on");
  const after = await child.reported(({ event }) => event === "after");
  t.deepEqual(after.listeners, before.listeners);
  t.deepEqual(after.resources, before.resources);

  t.like(await child.ended, { code: 0 }, "the process ends by itself");
  await child.closed;
  t.is(child.complaints, "", "no warning about listeners, or anything else");
  await until(async () => (await server.connections()) === 0);
  t.is((await server.channels?.()) ?? 0, 0);
}

test("a thousand waiters for one key leave nothing behind", async (t) => {
  await waitInVain(
    t,
    Array.from({ length: CALLERS }, () => "LOCK_one"),
  );
});

test("a thousand waiters for a hundred keys leave nothing behind", async (t) => {
  await waitInVain(
    t,
    Array.from({ length: CALLERS }, (_, index) => `LOCK_each_${index % 100}`),
  );
});
