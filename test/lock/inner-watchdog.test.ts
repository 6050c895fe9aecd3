import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";

const KEY = "LOCK_account_1";
const BRIEF = { reentrant: true, lockTime: "3s" } as const;

test("a lock expires if neither its outer nor its inner body has a watchdog", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...BRIEF, watchdog: false }, () =>
    process.call(KEY, { ...BRIEF, watchdog: false }, async (inner) => {
      await fleet.clock.advance(2_000);
      t.notThrows(() => inner.assertHeld());
      await fleet.clock.advance(2_000);
      t.throws(() => inner.assertHeld(), { instanceOf: LockLostError });
      t.true(await fleet.isFree(KEY));
    }),
  );
  await t.throwsAsync(outer, { instanceOf: LockLostError });
  await fleet.leftNothing(t, KEY, process);
});
