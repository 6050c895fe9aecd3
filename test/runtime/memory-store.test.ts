import test from "ava";
import { memoryStore } from "../../runtime/stores/memory";
import { VirtualClock } from "../support/virtual-clock";
import { acquire, newId, newKey, release, storeContract } from "./store-contract";

storeContract(test, () => {
  const clock = new VirtualClock();
  return { store: memoryStore({ clock }), elapse: (ms) => clock.advance(ms) };
});

test("expired keys that nobody asks for again do not pile up", async (t) => {
  const clock = new VirtualClock();
  const store = memoryStore({ clock });
  const key = newKey();
  const requestId = newId();
  await acquire(store, key, requestId, { lockTimeMs: 60_000 });
  for (let batch = 0; batch < 5; batch += 1) {
    for (let n = 0; n < 1_000; n += 1) await acquire(store, newKey(), newId(), { lockTimeMs: 10 });
    await clock.advance(10);
  }
  t.is(await release(store, key, requestId), "released", "a live key survives the sweeps");
});

test("two stores are two worlds", async (t) => {
  const key = newKey();
  t.true((await acquire(memoryStore(), key, newId())).granted);
  t.true((await acquire(memoryStore(), key, newId())).granted);
});

test("nothing of the store keeps the process alive or has to be closed", async (t) => {
  const clock = new VirtualClock();
  const store = memoryStore({ clock });
  await acquire(store, newKey(), newId());
  t.is(clock.pendingTimers, 0);
  await t.notThrowsAsync(store.close());
});
