import test from "ava";
import { Fleet } from "../support/fleet";
import { idle, passes } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a command whose late reply finds its own id in the key is found by the next, and not waited out", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  fleet.store.onTake = async (send) => {
    fleet.store.onTake = (sendNext) => sendNext();
    await send(); // It is carried out twice, and the second reply comes just too late.
    await passes(fleet.clock, SECOND + 1);
    return await send();
  };
  const call = process.call(KEY, { lockTime: "30s" }, idle);
  await fleet.clock.advance(5 * SECOND);
  t.is(await call, "done");
  await fleet.leftNothing(t, KEY, process);
});
