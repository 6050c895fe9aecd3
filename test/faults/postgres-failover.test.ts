import type { ExecutionContext } from "ava";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../runtime/stores/port";
import { portOf } from "../stores/postgres/kinds";
import { Crowd } from "../support/crowd";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import { startMovingAddress, type MovingAddress } from "../support/moving-address";
import { signalAll, startPrimary, type PostgresServer } from "../support/postgres-server";
import { retire } from "../support/retire";
import { judge } from "../support/sections";
import { inRounds } from "../support/suites";
import { until } from "../support/until";

// A primary and two standbys. Its commits wait for one of the standbys, and the one with the most data is promoted, so no failover loses
// a lock.

/** `POSTGRES_ROUNDS=20` plays each scenario 20 times. */
const ROUNDS = Number(process.env["POSTGRES_ROUNDS"] ?? 1);
const KEY = "LOCK_guarded";
const CONFIRMED = [
  "synchronous_standby_names=ANY 1 (*)",
  "wal_receiver_timeout=5s",
  "wal_retrieve_retry_interval=100ms",
];

/** A primary with two standbys, and the address that its clients use. */
class Group {
  readonly address: MovingAddress;
  primary: PostgresServer;
  standbys: readonly PostgresServer[];
  #started = 2;

  private constructor(primary: PostgresServer, standbys: readonly PostgresServer[], address: MovingAddress) {
    this.primary = primary;
    this.standbys = standbys;
    this.address = address;
  }

  static async start(t: ExecutionContext, ...settings: readonly string[]): Promise<Group> {
    const primary = await startPrimary(...settings);
    const standbys = [
      await primary.startStandby("one", ...settings),
      await primary.startStandby("two", ...settings),
    ];
    const group = new Group(primary, standbys, await startMovingAddress(primary.port));
    t.teardown(() => group.stop());
    await ask(primary, migrationSql());
    await group.#caughtUp();
    return group;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.address.port}/postgres`;
  }

  open(): WholeStore {
    return postgresStore(portOf(this.url));
  }

  /**
   * Promotes the standby with the most data, and makes the other one its standby. The other one must not confirm commits of the old primary
   * any more.
   */
  async failOver(): Promise<void> {
    const [next, other] = await this.#byData();
    await other.halt();
    await next.promote();
    this.primary = next;
    this.address.moveTo(next.port);
    await other.stop();
    this.standbys = [await this.#addStandby(), await this.#addStandby()];
  }

  /** Resolves when both standbys have all data of the primary. */
  async #caughtUp(): Promise<void> {
    const text = "SELECT FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
    await until(async () => (await ask(this.primary, text)).length === this.standbys.length);
  }

  async #byData(): Promise<readonly [PostgresServer, PostgresServer]> {
    const received = await Promise.all(
      this.standbys.map(async (server) => {
        const [row] = await ask(server, "SELECT pg_last_wal_receive_lsn() - '0/0'::pg_lsn AS bytes");
        return { server, bytes: Number(row?.["bytes"]) };
      }),
    );
    const [first, second] = received.toSorted((one, two) => two.bytes - one.bytes);
    if (first === undefined || second === undefined) throw new Error("there are fewer than two standbys");
    return [first.server, second.server];
  }

  #addStandby(): Promise<PostgresServer> {
    this.#started += 1;
    return this.primary.startStandby(`standby${this.#started}`, ...CONFIRMED);
  }

  async stop(): Promise<void> {
    await this.address.stop();
    await Promise.all([this.primary, ...this.standbys].map((server) => server.stop()));
  }
}

async function ask(server: PostgresServer, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const SCENARIOS: Record<string, (group: Group) => Promise<void>> = {
  async "the primary is killed"(group) {
    const old = group.primary;
    await old.halt();
    await group.failOver();
    await old.stop();
  },
  async "the primary hangs until a standby is promoted"(group) {
    const old = group.primary;
    signalAll(old, "SIGSTOP");
    await group.failOver();
    // Callers with a command in flight still have a connection to it.
    signalAll(old, "SIGCONT");
    await until(async () => (await ask(old, "SELECT 1")).length === 1);
    await old.stop();
  },
};

function numberOf({ sections }: Crowd): number {
  return sections.get(KEY)?.length ?? 0;
}

async function servesMore(crowd: Crowd): Promise<void> {
  const before = numberOf(crowd);
  await until(() => numberOf(crowd) > before + 50);
}

function openProcess(t: ExecutionContext, group: Group): FleetProcess {
  const own = new FleetProcess({ store: group.open(), commandTimeout: "500ms", logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  return own;
}

inRounds("POSTGRES_ROUNDS")(
  "no two bodies ever trust the same lock at once, whatever fails in a group of PostgreSQL servers",
  async (t) => {
    t.timeout(60_000 + ROUNDS * 90_000);
    const group = await Group.start(t, ...CONFIRMED);
    const crowd = new Crowd(() => group.open(), [KEY], true);
    t.teardown(() => crowd.end());
    await crowd.progresses();
    for (const [name, strike] of Object.entries(SCENARIOS)) {
      const [before, startedAt] = [numberOf(crowd), monotonicMs()];
      for (let round = 0; round < ROUNDS; round += 1) {
        await strike(group);
        await servesMore(crowd);
      }
      const tookMs = Math.round(monotonicMs() - startedAt);
      t.log(`${name}, ${ROUNDS} times: ${numberOf(crowd) - before} sections in ${tookMs} ms`);
    }
    await crowd.end();
    const { unannounced, fallenTokens } = judge(crowd.sections.get(KEY) ?? []);
    t.deepEqual(unannounced, []);
    t.deepEqual(fallenTokens, []);
    t.log(`failures: ${JSON.stringify([...crowd.failures])}`);
  },
);

inRounds("POSTGRES_ROUNDS")(
  "a lock that only the primary held is lost at its failover, and one that waits for a standby is not granted",
  async (t) => {
    t.timeout(300_000);
    for (const settings of [[], CONFIRMED]) {
      const group = await Group.start(t, ...settings);
      const [holder, other] = [openProcess(t, group), openProcess(t, group)];
      await Promise.all(group.standbys.map((standby) => standby.halt()));
      const [isHeld, mayEnd] = [deferred(), deferred()];
      const held = holder.call(KEY, { lockTime: "1m", waitTime: "100ms", retryTimes: 1 }, async () => {
        isHeld.resolve();
        await mayEnd.promise;
      });
      if (settings === CONFIRMED) await t.throwsAsync(held, { code: "LOCK_UNREACHABLE" });
      else await isHeld.promise;
      const old = group.primary;
      await old.halt();
      await Promise.all(group.standbys.map((standby) => standby.resume()));
      const hasFailedOver = group.failOver();
      group.address.cut();
      await hasFailedOver;
      await old.stop();
      await t.notThrowsAsync(other.call(KEY, { waitTime: "1s", retryTimes: 20 }, () => {}));
      mayEnd.resolve();
      if (settings !== CONFIRMED) await t.throwsAsync(held, { code: "LOCK_LOST" });
    }
  },
);

inRounds("POSTGRES_ROUNDS")(
  "a guard on an old primary does not keep callers of the new primary out",
  async (t) => {
    t.timeout(300_000);
    const old = await startPrimary();
    t.teardown(() => old.stop());
    await ask(old, migrationSql());
    const standby = await old.startStandby("one");
    t.teardown(() => standby.stop());
    const [holder, other] = [old, standby].map(({ url }) => {
      const own = new FleetProcess({ store: postgresStore(portOf(url)), logger: { warn: () => {} } });
      t.teardown(() => retire(own));
      return own;
    });
    const tx = new Client({ connectionString: old.url });
    await tx.connect();
    t.teardown(() => tx.end());
    const held = holder?.call(KEY, { lockTime: "1s", watchdog: false }, async (lock) => {
      const caughtUp = "SELECT FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
      await until(async () => (await ask(old, caughtUp)).length === 1);
      await standby.promote();
      await tx.query("BEGIN");
      await lock.guard((sql) => tx.query(sql));
      t.is(await other?.call(KEY, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
      await t.notThrowsAsync(tx.query("COMMIT"));
    });
    await t.throwsAsync(held ?? Promise.resolve(), { code: "LOCK_LOST" });
  },
);
