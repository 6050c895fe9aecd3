import { spawn } from "node:child_process";
import { join } from "node:path";
import test from "ava";
import { cannotRead } from "../../transformer/console/port/errors";
import { snapshots, type Stale } from "../../transformer/console/repeated-snapshots";
import type { Snapshot } from "../../transformer/console/snapshot";
import { PACKAGE } from "../hosts/project";
import { deferred } from "../support/deferred";
import { startRedis } from "../support/redis-server";
import { ofScript } from "../support/terminal";
import { until } from "../support/until";

// What the live commands show while the server hangs. It hangs because it is suspended, so its connections stay open.

const CLI = join(PACKAGE, "dist/transformer/cli/main.js");

test.serial(
  "top in a terminal keeps the locks of a Redis that hangs, and says how old they are",
  async (t) => {
    const server = await startRedis();
    await server.client().set("LOCK_pay_1", "a".repeat(32), "PX", 3_600_000);
    const terminal = spawn("script", ofScript([process.execPath, CLI, "top", "--redis", server.url]));
    let shown = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => void (shown += text));
    try {
      await until(() => shown.includes("LOCK_pay_1"));
      t.false(shown.includes("Stale"));
      process.kill(server.pid, "SIGSTOP");
      shown = "";
      await until(() => /Stale for \d+\.\d s: .*[^]*LOCK_pay_1/.test(shown));
      await until(() => /Stale for \d+\.\d s: The locks cannot be read: .*[^]*LOCK_pay_1/.test(shown));
      process.kill(server.pid, "SIGCONT");
      await until(() => /keys scanned\.[^]*LOCK_pay_1/.test(shown.slice(shown.lastIndexOf("Stale") + 200)));
      t.pass();
    } finally {
      process.kill(server.pid, "SIGCONT");
      terminal.kill();
      await server.stop();
    }
  },
);

test("a snapshot is stale while the next one takes long, and after the next one has failed", async (t) => {
  const snapshot = { locks: [] } as unknown as Snapshot;
  const hangs = deferred<Snapshot>();
  const looks = [Promise.resolve(snapshot), hangs.promise, Promise.resolve(snapshot)];
  const seen = snapshots({ look: async () => (await looks.shift()) ?? snapshot }, 10);
  t.deepEqual((await seen.next()).value, { snapshot });
  const stale = (await seen.next()).value as Stale;
  t.true(stale.staleForMs >= 2_000);
  t.is(stale.trouble, undefined);
  const later = (await seen.next()).value as Stale;
  t.true(later.staleForMs > stale.staleForMs);
  hangs.reject(cannotRead(new Error("the server does not answer")));
  let failed = later;
  while (failed.trouble === undefined) failed = (await seen.next()).value as Stale;
  t.is(failed.trouble, "The locks cannot be read: the server does not answer.");
  t.true(failed.staleForMs >= later.staleForMs);
  t.deepEqual((await seen.next()).value, { snapshot });
});
