import test from "ava";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { passes } from "../support/jobs";

// A hold with permits counts for as many callers as the store granted, whatever reply is lost or late.

const KEY = "LOCK_mail_1";
const FIVE = { permits: 5, lockTime: "30s" } as const;
const SECOND = 1_000;

test("no more callers enter than permits if a late grant follows a renewal that keeps one permit", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process({ commandTimeout: "1s" }), fleet.process()];
  const end = deferred();
  let [inside, most] = [0, 0];
  const fiveOf = (process: FleetProcess): Promise<unknown>[] =>
    Array.from({ length: 5 }, () =>
      process.call(KEY, FIVE, async () => {
        inside += 1;
        most = Math.max(most, inside);
        await end.promise;
        inside -= 1;
      }),
    );
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const first = fiveOf(one);
  await fleet.clock.advance(10);
  fleet.store.onAcquire = async (send) => {
    fleet.store.onAcquire = (sendNext) => sendNext();
    const reply = await send(); // All five permits.
    await passes(fleet.clock, 1_500);
    return reply;
  };
  fleet.store.onRenew = async (send) => {
    fleet.store.onRenew = (sendNext) => sendNext();
    const replies = await send(); // Keeps one of them.
    await passes(fleet.clock, SECOND);
    return replies;
  };
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(2 * SECOND);
  const second = fiveOf(two);
  await fleet.clock.advance(5 * SECOND);
  t.is(most, 5);
  end.resolve();
  await fleet.clock.advance(5 * SECOND);
  await Promise.all([...first, ...second]);
  await fleet.leftNothing(t, KEY, one, two);
});
