import test from "ava";
import { Heartbeat } from "../../runtime/stores/connection/heartbeat";
import { VirtualClock } from "../support/virtual-clock";

const INTERVAL_MS = 10_000;

/** Returns a heartbeat whose connection is dead, and the number of times that it found that. Its next ping is due after the interval. */
async function deadConnection(clock: VirtualClock): Promise<{ heartbeat: Heartbeat; found(): number }> {
  let found = 0;
  const heartbeat = new Heartbeat(
    clock,
    () => new Promise(() => {}),
    () => (found += 1),
  );
  heartbeat.needed();
  await clock.advance(INTERVAL_MS);
  heartbeat.needed();
  return { heartbeat, found: () => found };
}

test("a connection is dead if a ping has no answer by the time of the next one", async (t) => {
  const clock = new VirtualClock();
  const { found } = await deadConnection(clock);
  t.is(found(), 0);
  await clock.advance(INTERVAL_MS);
  t.is(found(), 1);
});

test("a connection that is closed when its ping is due is not replaced", async (t) => {
  const clock = new VirtualClock();
  const { heartbeat, found } = await deadConnection(clock);
  clock.after(INTERVAL_MS, () => heartbeat.stop()); // It runs after the timer of the heartbeat, and before its callback.
  await clock.advance(INTERVAL_MS);
  t.is(found(), 0);
  t.is(clock.pendingTimers, 0);
});
