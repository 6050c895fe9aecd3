import test from "ava";
import { Fleet } from "../support/fleet";
import { idle, passes } from "../support/jobs";
import { lostOnTheWay } from "../support/tampered-store";

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

test("what was seen to be gone, and answers late that it took the key, is given back with the wait", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  fleet.store.onTake = async (send) => {
    fleet.store.onTake = (sendNext) => sendNext();
    const reply = await send();
    await passes(fleet.clock, 1_500);
    return reply;
  };
  fleet.store.onRenew = async () => {
    fleet.store.onRenew = lostOnTheWay;
    return [{ renewed: false, holder: undefined }]; // As a replica says that has not heard of it.
  };
  const controller = new AbortController();
  const call = process.call(KEY, {}, () => t.fail(), { signal: controller.signal });
  const aborted = t.throwsAsync(call, { any: true });
  await fleet.clock.advance(1_600);
  t.is(fleet.store.renewals, 2);
  t.false(await fleet.isFree(KEY));
  controller.abort();
  await aborted;
  await fleet.clock.advance(2 * SECOND);
  await fleet.leftNothing(t, KEY, process);
});
