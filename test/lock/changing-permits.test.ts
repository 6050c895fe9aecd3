import test, { type ExecutionContext } from "ava";
import { LockWaitTimeoutError } from "../../runtime/base/errors";
import type { LockOptions } from "../../runtime/lock/settings";
import { memoryStore } from "../../runtime/stores/memory";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import type { Store } from "../../runtime/stores/port";
import { TIMEOUT_MS } from "../store-contract/subject";
import { poolPort } from "../stores/postgres/pool-port";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startPostgres } from "../support/postgres-server";
import { startRedis } from "../support/redis-server";
import { until } from "../support/until";

// The number of permits changes while callers hold the lock, as with `permits="${config.limit}"`.

const KEY = "LOCK_report_1";

interface Call {
  readonly done: Promise<void>;
  /** Ends the body. Rejects if the lock was lost meanwhile. */
  readonly leave: () => Promise<void>;
}

/** Two processes whose calls use the limit that is in force when they begin. */
class Limited {
  limit = 3;
  /** The number of bodies that run now. */
  inside = 0;
  readonly #processes: readonly FleetProcess[];

  constructor(open: () => Store) {
    const logger = { warn() {} }; // Different limits cause a warning.
    this.#processes = [open(), open()].map((store) => new FleetProcess({ store, logger }));
  }

  /** Starts calls in each process in turn. Each waits for a permit, and then holds it until `leave` is called. */
  start(count: number): readonly Call[] {
    return Array.from({ length: count }, (_, n) => this.#call(n, { wait: "forever" }));
  }

  /** Asserts that no process finds a permit for a new call. */
  async assertFull(t: ExecutionContext): Promise<void> {
    for (const n of this.#processes.keys()) {
      await t.throwsAsync(this.#call(n, { wait: 0 }).done, { instanceOf: LockWaitTimeoutError });
    }
  }

  #call(n: number, options: Pick<LockOptions, "wait">): Call {
    const end = deferred();
    const process = this.#processes[n % this.#processes.length] as FleetProcess;
    const done = process.call(KEY, { ...options, permits: this.limit }, async () => {
      this.inside += 1;
      await end.promise;
      this.inside -= 1;
    });
    const leave = (): Promise<void> => {
      end.resolve();
      return done;
    };
    return { done, leave };
  }

  async close(): Promise<void> {
    for (const { locker } of this.#processes) await locker.store.close?.();
  }
}

const allLeave = (calls: readonly Call[]): Promise<unknown> => Promise.all(calls.map(({ leave }) => leave()));

/** A limit falls from 3 to 1, and then rises to 2. */
async function changesLimit(t: ExecutionContext, open: () => Store): Promise<void> {
  const calls = new Limited(open);
  const [first, ...others] = calls.start(3);
  await until(() => calls.inside === 3);
  await calls.assertFull(t);

  calls.limit = 1;
  await first?.leave();
  await calls.assertFull(t); // Two holders of the old limit keep their permits.
  t.is(calls.inside, 2);
  const [alone] = calls.start(1);
  await allLeave(others);
  await until(() => calls.inside === 1);
  await calls.assertFull(t);
  t.is(calls.inside, 1);

  calls.limit = 2;
  await calls.assertFull(t); // The holder of the old limit shares with nobody.
  const waiting = calls.start(3);
  await alone?.leave();
  await until(() => calls.inside === 2);
  await calls.assertFull(t);
  t.is(calls.inside, 2);
  await allLeave(waiting);
  await calls.close();
}

test("memory: permits that change are obeyed by new callers, and holders keep theirs", async (t) => {
  const store = memoryStore();
  await changesLimit(t, () => store);
});

test("Redis: permits that change are obeyed by new callers, and holders keep theirs", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  await changesLimit(t, () => redisStore(server.client()));
});

test("PostgreSQL: permits that change are obeyed by new callers, and holders keep theirs", async (t) => {
  const server = await startPostgres();
  t.teardown(server.stop);
  const admin = poolPort(server.url);
  await admin.query(migrationSql(), [], TIMEOUT_MS);
  await admin.close();
  await changesLimit(t, () => postgresStore(poolPort(server.url)));
});
