import { resolve, sep } from "node:path";
import { setImmediate as turnOfTheEventLoop, setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import type * as Lockweave from "../runtime";
import type { SeededRandom } from "../test/support/seeded-random";

/** A separate runtime with its own client, which acts like another process. */
export interface Member {
  readonly withLock: typeof Lockweave.withLock;
  readonly shutdown: typeof Lockweave.shutdown;
  /** A signal that is passed to many calls and never aborted. Anything that a call attaches to it would stay there. */
  readonly signal: AbortSignal;
}

/** The keys that somebody else holds all the time. */
export const HELD_KEYS = Array.from({ length: 50 }, (_, nth) => `held:${nth}`);

export function enter(client: Redis): Member {
  const { configure, withLock, shutdown } = freshRuntime();
  configure({ redis: client, woven: false, logger: { warn() {} } });
  return { withLock, shutdown, signal: new AbortController().signal };
}

/** Loads a new copy of the runtime. `configure` applies to the whole process, so each member needs its own copy. */
function freshRuntime(): typeof Lockweave {
  const directory = resolve(__dirname, "../runtime");
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(directory + sep)) Reflect.deleteProperty(require.cache, file);
  }
  return require(directory) as typeof Lockweave;
}

class BodyError extends Error {}
class Aborted extends Error {}

interface Kind {
  readonly perMille: number;
  run(member: Member, random: SeededRandom): Promise<unknown>;
}

const KINDS: readonly Kind[] = [
  {
    perMille: 500,
    run: ({ withLock }, random) => withLock(anyKey(random), {}, () => {}),
  },
  {
    perMille: 200, // All members contend for the same few keys.
    run: ({ withLock }, random) => withLock(`hot:${random.below(8)}`, {}, () => turnOfTheEventLoop()),
  },
  {
    perMille: 100,
    run: ({ withLock, signal }, random) => withLock(anyKey(random), { signal }, () => {}),
  },
  {
    perMille: 50,
    run: ({ withLock }, random) => withLock(`fenced:${random.below(20)}`, { fencing: true }, () => {}),
  },
  {
    perMille: 40,
    run: ({ withLock }, random) =>
      withLock(anyKey(random), {}, (lock) => {
        lock.signal.addEventListener("abort", () => {});
        lock.assertHeld();
      }),
  },
  {
    perMille: 30,
    run: ({ withLock }, random) =>
      withLock(anyKey(random), {}, () => {
        throw new BodyError();
      }),
  },
  {
    perMille: 10, // The runtime renews the key at a third of its lock time.
    run: ({ withLock }, random) => withLock(anyKey(random), { lockTime: "900ms" }, () => pause(400)),
  },
  {
    perMille: 40,
    run: ({ withLock }, random) => withLock(heldKey(random), { retryTimes: 2, waitTime: "20ms" }, () => {}),
  },
  {
    perMille: 20,
    run: ({ withLock }, random) => withLock(heldKey(random), { retryTimes: 0, onFailure: "skip" }, () => {}),
  },
  {
    perMille: 10,
    async run({ withLock }, random) {
      const aborter = new AbortController();
      const { signal } = aborter;
      const waiting = withLock(heldKey(random), { signal }, () => {});
      setTimeout(() => aborter.abort(new Aborted()), random.below(20));
      await waiting;
    },
  },
];

function anyKey(random: SeededRandom): string {
  return `any:${random.below(5_000)}`;
}

function heldKey(random: SeededRandom): string {
  return `held:${random.below(HELD_KEYS.length)}`;
}

/**
 * Runs one section of a random kind.
 *
 * @returns the outcome
 */
export async function runSection(member: Member, random: SeededRandom): Promise<string> {
  let drawn = random.below(1_000);
  const kind = KINDS.find(({ perMille }) => (drawn -= perMille) < 0);
  try {
    await kind?.run(member, random);
    return "done";
  } catch (error) {
    if (error instanceof BodyError) return "failed in the body";
    if (error instanceof Aborted) return "aborted while waiting";
    // Each member has its own error classes, so `instanceof` does not work.
    const { code } = error as Partial<Lockweave.LockError>;
    if (code === "LOCK_WAIT_TIME_OUT") return "timed out";
    if (code === "LOCK_UNREACHABLE") return "without a reply in time"; // The machine was busy with other work.
    if (code === "LOCK_LOST") return "lost";
    throw error;
  }
}
