import { LockOptionError, lockKey, tryObtain, type Duration } from "./index";

// This entry point has a file of its own, which `lockweave` does not load. It imports only public names, so that it contains no second copy
// of the runtime. It needs no scheduler, because the type of the coordinator equals node-cron's own.

/** The options of `runCoordinator()`. */
export interface RunCoordinatorOptions {
  /** The namespace of the keys: `LOCK_<businessFlag>_<name of the task>:<time>`. Default `"cron"`. */
  readonly businessFlag?: string;
  /** The store, by its name in `configure({ stores })`. */
  readonly store?: string;
  /** The number of replicas of the Redis master that must confirm the lock. */
  readonly replicas?: number;
}

/** Decides for each firing of a task of node-cron whether this machine runs it. It has the type `RunCoordinator` of node-cron 4. */
export interface RunCoordinator {
  /**
   * Acquires the key of the firing for `ttlMs`, without renewal. Nothing releases it, because a machine with a late clock may ask for the
   * firing after the task has ended. So there is no `onComplete`.
   *
   * @param key the name of the task, and the time of the firing by the schedule
   * @param ttlMs the `distributedLease` of the task, in milliseconds: at least 100, and at most 24 hours
   * @returns false if another machine has the firing
   * @throws {LockOptionError} if the `distributedLease` is shorter than 100 ms or longer than 24 hours
   * @throws {LockUnreachableError} if the store did not reply. node-cron then skips the firing
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
}

const OPTIONS: readonly string[] = [
  "businessFlag",
  "store",
  "replicas",
] satisfies (keyof RunCoordinatorOptions)[];

const SHORTEST_LEASE_MS = 100;
const LONGEST_LEASE_MS = 86_400_000;

/**
 * Returns a coordinator for node-cron 4: `cron.setRunCoordinator(runCoordinator())`. One machine then runs each firing of a task with
 * `distributed: true`. If that machine dies, nobody runs the firing. Call `configure()` before the first firing.
 *
 * A key lasts for the `distributedLease` of its task, which is 30 s by default. That must be longer than the largest difference between the
 * clocks of your machines.
 *
 * @throws {LockOptionError} if an option is unknown, or the options are not an object
 */
export function runCoordinator(options: RunCoordinatorOptions = {}): RunCoordinator {
  const given = (options as object | null) === null ? "null" : typeof options;
  if (given !== "object") {
    throw new LockOptionError(
      `Expected runCoordinator() or runCoordinator({ businessFlag: "cron" }), got ${given}`,
    );
  }
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new LockOptionError(
      `runCoordinator() has no option \`${unknown}\`. The options are ${OPTIONS.join(", ")}`,
    );
  }
  const { businessFlag = "cron", ...place } = options;
  lockKey(businessFlag); // Reports a wrong flag now, and not at the first firing.
  return {
    async shouldRun(key, ttlMs) {
      const lockTime = leaseOf(ttlMs);
      const terms = { ...place, ...ONCE, lockTime, holdAtMost: lockTime };
      const lock = await tryObtain(lockKey(businessFlag, key), terms);
      // The key stays. If this process was suspended for the whole lease, the release throws, and node-cron skips the firing.
      await lock?.release();
      return lock !== undefined;
    },
  };
}

/** These options hold whatever the defaults of `configure()` are. `holdAtMost` prevents renewals. */
const ONCE = {
  autoUnlock: false,
  watchdog: true,
  lockAtLeast: "0s",
  release: "awaited",
  onLost: "throw",
  fencing: false,
} as const;

function leaseOf(ttlMs: number): Duration {
  if (ttlMs >= SHORTEST_LEASE_MS && ttlMs <= LONGEST_LEASE_MS) return `${Math.ceil(ttlMs)}ms`;
  throw new LockOptionError(
    `Expected the \`distributedLease\` of a task to be ${SHORTEST_LEASE_MS} to ${LONGEST_LEASE_MS} ms, got ${String(ttlMs)}. Fix: set it to more than the largest difference between the clocks of your machines`,
  );
}
