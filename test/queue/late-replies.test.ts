import test from "ava";
import { Fleet } from "../support/fleet";
import { idle, passes } from "../support/jobs";
import { lostOnTheWay } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("the next command finds a hold that a late reply to a repeated command reported", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  fleet.store.onAcquire = async (send) => {
    fleet.store.onAcquire = (sendNext) => sendNext();
    await send(); // The command runs twice, and the second reply comes just too late.
    await passes(fleet.clock, SECOND + 1);
    return await send();
  };
  const call = process.call(KEY, { lockTime: "30s" }, idle);
  await fleet.clock.advance(5 * SECOND);
  t.is(await call, "done");
  await fleet.leftNothing(t, KEY, process);
});

test("a hold that seemed gone is released after an abort if a late reply grants it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  fleet.store.onAcquire = async (send) => {
    fleet.store.onAcquire = (sendNext) => sendNext();
    const reply = await send();
    await passes(fleet.clock, 1_500);
    return reply;
  };
  fleet.store.onRenew = async () => {
    fleet.store.onRenew = lostOnTheWay;
    return [{ renewed: false, holder: undefined }]; // Like a replica that has not received the hold.
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
