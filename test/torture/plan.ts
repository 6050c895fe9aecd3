import type { LockOptions } from "../../runtime/lock/settings";
import type { SeededRandom } from "../support/seeded-random";

/** The longest lock time of any call, in milliseconds, including extensions. */
export const LONGEST_LOCK_MS = 1_500;
const PERMITS = 3;

/** One call of a tagged function. The seed determines it. */
export interface Plan {
  readonly keys: readonly string[];
  readonly isEach: boolean;
  readonly options: LockOptions;
  /** How many may be inside at once. */
  readonly room: number | "any";
  readonly bodyMs: number;
  /** How long the body blocks the process between two checks. */
  readonly blocksMs: number;
  readonly extendsTo?: `${number}ms` | undefined;
  /** When the caller aborts, counted from the call. */
  readonly abortsAfterMs?: number | undefined;
  /** Whether the body calls a function with the same lock again. Needs `reentrant`, or readers. */
  readonly entersAgain: boolean;
  /** Another key that the body locks meanwhile. */
  readonly locksInside?: string | undefined;
  /** The key that the caller locks, with `reentrant`, when it learns that its lock is lost. */
  readonly locksOnLoss?: string | undefined;
  /** Whether a transaction guards the lock, if the store can. */
  readonly guards: boolean;
}

/** The keys of one round. What may be inside together depends on the key. */
export class Keys {
  readonly #round: string;

  constructor(round: string) {
    this.#round = round;
  }

  get exclusive(): readonly [string, ...string[]] {
    return [this.#key("pay"), this.#key("ship"), this.#key("refund")];
  }

  get shared(): string {
    return this.#key("read");
  }

  get permitted(): string {
    return this.#key("mail");
  }

  get replicated(): string {
    return this.#key("replicated");
  }

  get all(): readonly string[] {
    return [...this.exclusive, this.shared, this.permitted, this.replicated];
  }

  /** A key for the callers of one process. */
  own(processSeed: number): string {
    return this.#key(`own${processSeed}`);
  }

  #key(flow: string): string {
    return `LOCK_${flow}_${this.#round}`;
  }
}

/** @param ownKey a key that only this process locks, so that a body can outlive its lock without keeping others out */
export function nextPlan(random: SeededRandom, keys: Keys, ownKey: string, hasSharedLocks: boolean): Plan {
  const shared = hasSharedLocks ? (["shared", "permits"] as const) : [];
  const kind = random.oneOf("exclusive", "exclusive", "exclusive", "each", "replicas", "own", ...shared);
  const lockTimeMs = 300 + random.below(LONGEST_LOCK_MS - 300);
  const watchdog = random.happens(0.7);
  const times: LockOptions = {
    lockTime: `${lockTimeMs}ms`,
    waitTime: `${100 + random.below(400)}ms`,
    retryTimes: random.below(6),
    onFailure: random.oneOf("throw", "skip"),
    onLost: random.oneOf("throw", "warn"),
    watchdog,
    ...(watchdog && random.happens(0.15) && { holdAtMost: `${lockTimeMs + random.below(1_000)}ms` }),
    ...(random.happens(0.3) && { release: "background" }),
  };
  const base = {
    isEach: false,
    // A body that is longer than its lock time needs a watchdog, or loses the lock.
    bodyMs: random.happens(0.2) ? random.below(2 * lockTimeMs) : random.below(30),
    blocksMs: random.happens(0.2) ? random.below(40) : 0,
    extendsTo: random.happens(0.1) ? (`${LONGEST_LOCK_MS}ms` as const) : undefined,
    abortsAfterMs: random.happens(0.1) ? random.below(500) : undefined,
    entersAgain: random.happens(0.5),
    locksOnLoss: random.happens(0.5) ? random.oneOf(...keys.exclusive) : undefined,
    guards: random.happens(0.3),
  };
  if (kind === "shared") {
    const isReader = random.happens(0.75);
    const options: LockOptions = { ...times, mode: isReader ? "read" : "write" };
    return { ...base, keys: [keys.shared], options, room: isReader ? "any" : 1 };
  }
  if (kind === "permits") {
    return { ...base, keys: [keys.permitted], options: { ...times, permits: PERMITS }, room: PERMITS };
  }
  if (kind === "replicas") {
    return { ...base, keys: [keys.replicated], options: { ...times, replicas: 1 }, room: 1 };
  }
  if (kind === "own") {
    const { holdAtMost = `${lockTimeMs}ms`, ...rest } = times;
    const options: LockOptions = random.happens(0.5)
      ? { ...rest, onLost: "warn", lockTime: "300ms", watchdog: true, holdAtMost }
      : { ...rest, onLost: "warn", watchdog: false };
    return {
      ...base,
      keys: [ownKey],
      options,
      room: 1,
      bodyMs: lockTimeMs + random.below(200),
      extendsTo: undefined,
      locksOnLoss: random.oneOf(...keys.exclusive),
    };
  }
  if (kind === "each") {
    const some = keys.exclusive.filter(() => random.happens(0.6));
    return {
      ...base,
      keys: some.length === 0 ? keys.exclusive : some,
      options: times,
      isEach: true,
      room: 1,
    };
  }
  const ending = random.oneOf<LockOptions>(
    {},
    { reentrant: true },
    { reentrant: true },
    atLeast(random, lockTimeMs),
    EXPIRES,
  );
  const options: LockOptions = { ...times, fencing: random.happens(0.6), ...ending };
  const [first, ...others] = keys.exclusive;
  const key = random.oneOf(first, ...others);
  if (options.reentrant !== true || random.happens(0.7)) return { ...base, keys: [key], options, room: 1 };
  // Its body is still running when the timers that it has armed for the other lock serve other callers.
  const bodyMs = random.below(500);
  return { ...base, keys: [key], options, room: 1, bodyMs, locksInside: `${ownKey}_inside` };
}

/** A call whose body often lasts longer than its lock. A defect of a late release shows within seconds. */
export function nextOverrun(random: SeededRandom, keys: Keys): Plan {
  const lockTimeMs = 300;
  return {
    keys: [random.oneOf(...keys.exclusive)],
    isEach: false,
    options: {
      lockTime: `${lockTimeMs}ms`,
      waitTime: "50ms",
      retryTimes: 10,
      onLost: "warn",
      watchdog: false,
    },
    room: 1,
    bodyMs: random.below(2 * lockTimeMs),
    blocksMs: 0,
    entersAgain: false,
    guards: false,
  };
}

/** A call in the body or in the abort listener of another call. */
export function innerPlan(key: string): Plan {
  return {
    keys: [key],
    isEach: false,
    options: { lockTime: "300ms", waitTime: "300ms", retryTimes: 2, onLost: "warn", reentrant: true },
    room: 1,
    bodyMs: 100,
    blocksMs: 0,
    entersAgain: false,
    guards: false,
  };
}

/** Whether callers of a process get this lock in the order of their calls. */
export function isQueued({ isEach, room }: Plan): boolean {
  return !isEach && room === 1;
}

/** Whether no message tells the waiters that the lock has ended. */
export function endsUnheard({ options: { autoUnlock = true, lockAtLeast } }: Plan): boolean {
  return autoUnlock !== true || lockAtLeast !== undefined;
}

const EXPIRES: LockOptions = { autoUnlock: false, release: "awaited" };

function atLeast(random: SeededRandom, lockTimeMs: number): LockOptions {
  return { lockAtLeast: `${1 + random.below(lockTimeMs)}ms` };
}
