import test from "ava";
import { startChild } from "../support/child";
import { startRedis } from "../support/redis-server";
import type { SlowUptimeConfiguration, SlowUptimeReport } from "./children/slow-uptime";

test("a real process that loses its lock time during a clock read trusts no lock afterwards", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const configuration: SlowUptimeConfiguration = { url: server.url, key: "LOCK_slow_uptime" };
  const child = startChild<SlowUptimeReport>("slow-uptime.ts", configuration);
  t.teardown(() => child.kill());
  await child.reported(({ event }) => event === "ended");
  await child.closed;
  t.deepEqual(child.reports, [
    { event: "checked", check: "remaining", passed: false },
    { event: "checked", check: "assertHeld", passed: false },
    { event: "checked", check: "signal", passed: false },
    { event: "ended", isLockError: true },
  ]);
});
