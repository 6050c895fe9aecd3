import test from "ava";
import { Fleet } from "../support/fleet";
import { idle } from "../support/jobs";
import { lostOnTheWay } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a release that never arrived is sent once more, so the key does not stay for its lock time", async (t) => {
  const fleet = new Fleet();
  fleet.store.onDrop = (send) => {
    fleet.store.onDrop = () => send();
    return lostOnTheWay();
  };
  const call = fleet.process({ commandTimeout: "1s" }).call(KEY, {}, idle);
  await fleet.clock.advance(SECOND);
  t.is(await call, "done");
  t.is(fleet.store.releases, 2);
  t.true(await fleet.isForgotten(KEY));
});
