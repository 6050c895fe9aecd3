import test, { type ExecutionContext } from "ava";
import { Pool } from "pg";
import type { LockOptions } from "../../runtime/lock/settings";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { portOf } from "../stores/postgres/kinds";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startPrimary, type PostgresServer } from "../support/postgres-server";
import { retire } from "../support/retire";
import { until } from "../support/until";
import { inMatrixSerially, isMatrix } from "../support/suites";

// A standby that lags behind for long. A lock that it must confirm is not granted meanwhile, and a holder loses its lock before another
// caller enters.

let primary: PostgresServer;
let standby: PostgresServer;
let admin: Pool;
let receiver: Pool;

test.before(async () => {
  if (!isMatrix) return;
  primary = await startPrimary();
  admin = new Pool({ connectionString: primary.url, max: 1 });
  await admin.query(`${migrationSql()}
    CREATE ROLE waits_for_replay LOGIN SUPERUSER;
    ALTER ROLE waits_for_replay SET synchronous_commit = remote_apply;`);
  standby = await primary.startStandby("standby");
  receiver = new Pool({ connectionString: standby.url, max: 1 });
  await until(async () => (await admin.query("SELECT FROM pg_stat_replication")).rowCount === 1);
  await admin.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  await admin.query("SELECT pg_reload_conf()");
  const states = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'";
  await until(async () => (await admin.query(states)).rowCount === 1);
});

test.after.always(async () => {
  if (!isMatrix) return;
  await Promise.all([admin.end(), receiver.end()]);
  await Promise.all([primary.stop(), standby.stop()]);
});

function newProcess(t: ExecutionContext, url = primary.url): FleetProcess {
  const own = new FleetProcess({
    store: postgresStore(portOf(url)),
    commandTimeout: "500ms",
    logger: { warn: () => {} },
  });
  t.teardown(() => retire(own));
  return own;
}

const CONFIRMED: LockOptions = { replicas: 1, lockTime: "3s", waitTime: "1s", retryTimes: 600 };
const IMPATIENT: LockOptions = { ...CONFIRMED, waitTime: "300ms", retryTimes: 2 };

inMatrixSerially(
  "while the standby receives nothing, no lock is granted, and a holder loses its lock before another caller enters",
  async (t) => {
    const [holder, other] = [newProcess(t), newProcess(t)];
    const [isHeld, isLost, mayEnd] = [deferred(), deferred(), deferred()];
    let isInside = false;
    const held = holder.call("LOCK_lag", CONFIRMED, async ({ signal }) => {
      isInside = true;
      signal.addEventListener("abort", () => {
        isInside = false;
        isLost.resolve();
      });
      isHeld.resolve();
      await mayEnd.promise;
    });
    await isHeld.promise;
    const { rows } = await receiver.query<{ readonly pid: number }>("SELECT pid FROM pg_stat_wal_receiver");
    const pid = rows[0]?.pid ?? NaN;
    process.kill(pid, "SIGSTOP");
    t.teardown(() => process.kill(pid, "SIGCONT"));
    await t.throwsAsync(
      other.call("LOCK_new", IMPATIENT, () => t.fail()),
      { code: "LOCK_UNREACHABLE" },
    );
    const waited = other.call("LOCK_lag", CONFIRMED, () => isInside);
    await isLost.promise;
    process.kill(pid, "SIGCONT");
    t.false(await waited);
    mayEnd.resolve();
    await t.throwsAsync(held, { code: "LOCK_LOST" });
    t.is(await other.call("LOCK_new", CONFIRMED, () => "in"), "in");
  },
);

inMatrixSerially(
  "a standby that replays an hour later confirms locks, unless the role waits for the replay",
  async (t) => {
    await receiver.query("ALTER SYSTEM SET recovery_min_apply_delay = '1h'");
    await receiver.query("SELECT pg_reload_conf()");
    await until(async () => {
      const { rows } = await receiver.query<{ readonly delay: string }>(
        "SELECT current_setting('recovery_min_apply_delay') AS delay",
      );
      return rows[0]?.delay === "1h";
    });
    t.is(await newProcess(t).call("LOCK_late", CONFIRMED, () => "in"), "in");
    const strict = newProcess(t, primary.urlOf({ user: "waits_for_replay" }));
    await t.throwsAsync(
      strict.call("LOCK_replayed", IMPATIENT, () => t.fail()),
      { code: "LOCK_UNREACHABLE" },
    );
  },
);
