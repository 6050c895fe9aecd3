import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import { configure } from "../../runtime/config/configure";
import { LockError } from "../../runtime/base/errors";
import { withLock, type WithLockOptions } from "../../runtime/with-lock";
import { Fleet } from "../support/fleet";
import { SeededRandom } from "../support/seeded-random";

// Random calls under virtual time, of which many abort at a random time: while they wait, at the grant, or in the body.

const fleet = new Fleet();
const KEYS = ["random-a", "random-b", "random-c"];
const STORIES = 150;
const CALLS = 8;

test.before(() => {
  const logger = { warn: () => {} };
  // The handler changes nothing, but adds a promise to each failure.
  configure({ store: fleet.store, clock: fleet.clock, logger, onFailure: async () => {} }, "woven");
});

test.serial("no random call runs its body after an abort, or leaves a key behind", async (t) => {
  for (let seed = 1; seed <= STORIES; seed += 1) {
    const faults = await story(seed);
    t.deepEqual(faults, [], `seed ${seed}`);
  }
});

/** Runs random calls, and returns what they did wrong. */
async function story(seed: number): Promise<string[]> {
  const random = new SeededRandom(seed);
  const below = (end: number): number => random.below(end);
  const faults: string[] = [];
  const kinds: readonly WithLockOptions[] = [
    { mode: "read" },
    { permits: 2 },
    { reentrant: true },
    { onFailure: "skip" },
    { wait: 0 },
    { release: "background" },
  ];
  const inside = new Set<symbol>();
  const call = async (id: number): Promise<void> => {
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error(`abort of ${id}`);
    const aborts = below(3) > 0;
    const isAtGrant = below(2) === 0;
    const abortAfterMs = isAtGrant ? below(2) * below(300) : below(400);
    const jobs = below(isAtGrant ? 3 : 12);
    const abort = async (): Promise<void> => {
      unsubscribe("lockweave:grant", onGrant);
      for (let job = 0; job < jobs; job += 1) await Promise.resolve();
      controller.abort(reason);
    };
    const onGrant = (): void => void abort();
    if (aborts && isAtGrant && abortAfterMs === 0) subscribe("lockweave:grant", onGrant);
    else if (aborts) {
      fleet.clock.after(abortAfterMs, () => {
        if (isAtGrant) subscribe("lockweave:grant", onGrant);
        else void abort();
      });
    }
    const options = {
      wait: `${1 + below(300)}ms`,
      lockTime: "10s",
      ...random.oneOf({}, ...kinds),
      signal,
    } as const;
    const isSeveral = below(3) === 0;
    const keys = isSeveral
      ? KEYS.filter(() => below(2) === 0).concat("random-d")
      : random.oneOf("random-a", ...KEYS);
    const bodyMs = below(200);
    const name = Symbol(String(id));
    try {
      await withLock(keys, options, async () => {
        if (signal.aborted) faults.push(`${id} began after its abort`);
        inside.add(name);
        await new Promise<void>((resolve) => void fleet.clock.after(bodyMs, resolve));
        inside.delete(name);
      });
    } catch (error) {
      if (error !== reason && !(error instanceof LockError)) faults.push(`${id} threw ${String(error)}`);
    }
    unsubscribe("lockweave:grant", onGrant);
    if (inside.has(name)) faults.push(`${id} left its body behind`);
  };
  const calls = Array.from({ length: CALLS }, async (_, id) => {
    await new Promise<void>((resolve) => void fleet.clock.after(below(200), resolve));
    await call(id);
  });
  const all = Promise.all(calls);
  await fleet.clock.advance(10_000);
  await all;
  await fleet.clock.advance(10_000);
  for (const key of [...KEYS, "random-d"]) if (!(await fleet.isForgotten(key))) faults.push(`${key} is left`);
  return faults;
}
