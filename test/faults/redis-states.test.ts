import { rm } from "node:fs/promises";
import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { LockError, LockMisconfiguredError, LockUnreachableError } from "../../runtime/base/errors";
import { redisStore } from "../../runtime/stores/redis/redis";
import { FleetProcess } from "../support/fleet";
import { startRedis } from "../support/redis-server";
import { retire } from "../support/retire";
import { until } from "../support/until";

// Each state in which Redis rejects locks. The caller gets the error and the message for it, and the next call works when the
// state is over.

interface State {
  /** Brings Redis into the state, over a connection that keeps its rights. */
  begin(admin: Redis, key: string): Promise<unknown>;
  end(admin: Redis, key: string): Promise<unknown>;
  readonly error: typeof LockUnreachableError | typeof LockMisconfiguredError;
  /** What the message must say. */
  readonly words: RegExp;
}

const config = (admin: Redis, ...args: string[]): Promise<unknown> => admin.call("CONFIG", "SET", ...args);

const STATES: Record<string, State> = {
  "Redis has become a replica (READONLY)": {
    begin: (admin) => admin.replicaof("127.0.0.1", 1),
    end: (admin) => admin.replicaof("NO", "ONE"),
    error: LockUnreachableError,
    words: /did not grant the lock .*READONLY You can't write against a read only replica/,
  },
  "Redis is a replica that has lost its master (MASTERDOWN)": {
    async begin(admin) {
      await config(admin, "replica-serve-stale-data", "no");
      await admin.replicaof("127.0.0.1", 1);
    },
    end: (admin) => admin.replicaof("NO", "ONE"),
    error: LockUnreachableError,
    words: /did not grant the lock .*(MASTERDOWN|READONLY)/, // A plain write gets the latter.
  },
  "Redis is out of memory (OOM)": {
    begin: (admin) => config(admin, "maxmemory", "1"),
    end: (admin) => config(admin, "maxmemory", "0"),
    error: LockUnreachableError,
    words: /did not grant the lock .*OOM command not allowed/,
  },
  "Redis has too few replicas (NOREPLICAS)": {
    begin: (admin) => config(admin, "min-replicas-to-write", "1"),
    end: (admin) => config(admin, "min-replicas-to-write", "0"),
    error: LockUnreachableError,
    words: /did not grant the lock .*NOREPLICAS/,
  },
  "Redis cannot save to disk (MISCONF)": {
    async begin(admin) {
      const [, dir] = (await admin.call("CONFIG", "GET", "dir")) as string[];
      if (dir !== undefined) await rm(dir, { recursive: true });
      await config(admin, "save", "3600 1");
      await admin.call("BGSAVE");
      await until(async () => (await admin.info("persistence")).includes("rdb_last_bgsave_status:err"));
    },
    end: (admin) => config(admin, "save", ""),
    error: LockUnreachableError,
    words: /did not grant the lock .*MISCONF/,
  },
  "a script runs forever (BUSY)": {
    async begin(admin) {
      await config(admin, "busy-reply-threshold", "20");
      const runaway = admin.duplicate();
      runaway.on("error", () => {});
      void runaway
        .eval("while true do end", 0)
        .catch(() => {}) // It is killed.
        .finally(() => runaway.disconnect());
      await until(() =>
        admin.ping().then(
          () => false,
          (error: unknown) => String(error).includes("BUSY"),
        ),
      );
    },
    end: (admin) => admin.script("KILL"),
    error: LockUnreachableError,
    words: /did not grant the lock .*BUSY/,
  },
  "Redis requires a password (NOAUTH)": {
    async begin(admin) {
      await config(admin, "requirepass", "secret");
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    },
    end: (admin) => config(admin, "requirepass", ""),
    error: LockMisconfiguredError,
    words: /Redis requires a password \(NOAUTH.*\)\. Fix: give it to the client/,
  },
  "the Redis user may not run a command (NOPERM)": {
    begin: (admin) => admin.call("ACL", "SETUSER", "default", "-set"),
    end: (admin) => admin.call("ACL", "SETUSER", "default", "+@all"),
    error: LockMisconfiguredError,
    words:
      /the Redis user lacks permission for a command or a key that locks need \((NOPERM|ERR The user executing)/,
  },
  "the key holds other data (WRONGTYPE)": {
    begin: (admin, key) => admin.rpush(key, "somebody's list"),
    end: (admin, key) => admin.del(key),
    error: LockMisconfiguredError,
    words: /the key contains data that is not a lock \(WRONGTYPE.*\)\. Fix: choose another businessFlag/,
  },
};

const KEY = "LOCK_state";
const WAIT = { retryTimes: 2, waitTime: "200ms" } as const;
/** A permanent error comes immediately. A call that waited for its whole budget would outlast its test. */
const PATIENT = { retryTimes: 1, waitTime: "10m" } as const;

for (const [name, state] of Object.entries(STATES)) {
  for (const fencing of [false, true]) {
    test(`a call${fencing ? " with fencing" : ""} fails with an explanation while ${name}, and works afterwards`, async (t) => {
      const server = await startRedis();
      t.teardown(server.stop);
      const admin = server.client();
      const process = await connected(t, server.client());
      await state.begin(admin, KEY);

      const isForGood = state.error === LockMisconfiguredError;
      const options = { fencing, ...(isForGood ? PATIENT : WAIT) };
      let error: LockError;
      do {
        error = await t.throwsAsync<LockError>(
          process.call(KEY, options, () => t.fail()),
          { instanceOf: LockError },
        );
        // The machine is too busy for the last try.
      } while (/no reply from the store|no time left/.test(error.message));
      t.true(error instanceof state.error);
      t.regex(error.message, state.words);
      t.true(error.cause instanceof Error, "the error of the client");

      await state.end(admin, KEY);
      t.is(await process.call(KEY, PATIENT, () => "in"), "in");
      await until(async () => (await admin.exists(KEY)) === 0);
    });
  }
}

/** Creates a process that has held a lock, so its client is connected and Redis knows the scripts. */
async function connected(t: ExecutionContext, client: Redis): Promise<FleetProcess> {
  const process = new FleetProcess({ store: redisStore(client), logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  await process.call("LOCK_other", {}, () => {});
  return process;
}
