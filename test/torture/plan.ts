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

  #key(flow: string): string {
    return `LOCK_${flow}_${this.#round}`;
  }
}

export function nextPlan(random: SeededRandom, keys: Keys): Plan {
  const kind = random.oneOf("exclusive", "exclusive", "exclusive", "each", "shared", "permits", "replicas");
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
    bodyMs: random.happens(0.15) ? random.below(2 * lockTimeMs) : random.below(30),
    blocksMs: random.happens(0.2) ? random.below(40) : 0,
    extendsTo: random.happens(0.1) ? (`${LONGEST_LOCK_MS}ms` as const) : undefined,
    abortsAfterMs: random.happens(0.1) ? random.below(500) : undefined,
    entersAgain: random.happens(0.5),
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
  return { ...base, keys: [random.oneOf(first, ...others)], options, room: 1 };
}

const EXPIRES: LockOptions = { autoUnlock: false, release: "awaited" };

function atLeast(random: SeededRandom, lockTimeMs: number): LockOptions {
  return { lockAtLeast: `${1 + random.below(lockTimeMs)}ms` };
}
