import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import test from "ava";
import { storeContract } from "../store-contract";
import { release, newId, newKey, enqueue, queued, acquire, acquiredInTurn } from "../store-contract/subject";
import { memoryStore } from "../../runtime/stores/memory";
import { flat } from "../support/flat-store";
import { VirtualClock } from "../support/virtual-clock";
import { registering } from "./registering";

storeContract(registering(test), () => {
  const clock = new VirtualClock();
  const store = memoryStore({ clock });
  return {
    store,
    elapse: (ms) => clock.advance(ms),
    put: async (key, value, ms) => void (await acquire(store, key, value, { lockTimeMs: ms })),
  };
});

storeContract(registering(test, "without groups: "), () => {
  const clock = new VirtualClock();
  const store = { ...flat(memoryStore({ clock })), queue: undefined, admin: undefined };
  return { store, elapse: (ms) => clock.advance(ms) };
});

test("expired keys are removed from memory even if no command names them again", async (t) => {
  const clock = new VirtualClock();
  const store = memoryStore({ clock });
  const key = newKey();
  const requestId = newId();
  await acquire(store, key, requestId, { lockTimeMs: 60_000_000 });
  const heapBefore = heapInUse();
  for (let batch = 0; batch < 100; batch += 1) {
    for (let n = 0; n < 1_000; n += 1) await acquire(store, newKey() + LONG, newId(), { lockTimeMs: 10 });
    await clock.advance(10);
  }
  const grownBy = heapInUse() - heapBefore;
  t.true(
    grownBy < 10 * LONG.length * 1_000,
    `${grownBy} bytes after 100,000 keys, of which 1,000 were held at once`,
  );
  t.deepEqual(await release(store, key, requestId), { released: true }, "a live key survives the sweeps");
});

test("acquiring a key costs the same with 10,000 held keys", async (t) => {
  let readings = 0;
  const clock = new (class extends VirtualClock {
    override now(): number {
      readings += 1;
      return super.now();
    }
  })();
  const store = memoryStore({ clock });
  for (let n = 0; n < 10_000; n += 1) await acquire(store, newKey(), newId());
  t.true(readings < 100_000, `the store read the clock ${readings} times`);
});

const LONG = "x".repeat(1_000);

/** The heap size of this thread in bytes, after a garbage collection. */
function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return getHeapStatistics().used_heap_size;
}

test("fencing tokens keep rising in a later store, as after a restart", async (t) => {
  const clock = new VirtualClock();
  const first = await acquire(memoryStore({ clock }), newKey(), newId(), { fencing: true });
  await clock.advance(1_000);
  const later = await acquire(memoryStore({ clock }), newKey(), newId(), { fencing: true });
  t.true(first.acquired && later.acquired && (later.fencingToken ?? 0) > (first.fencingToken ?? Infinity));
});

test("two memory stores share no locks", async (t) => {
  const key = newKey();
  t.true((await acquire(memoryStore(), key, newId())).acquired);
  t.true((await acquire(memoryStore(), key, newId())).acquired);
});

test("a memory store sets no timer, and close() is optional", async (t) => {
  const clock = new VirtualClock();
  const store = memoryStore({ clock });
  await acquire(store, newKey(), newId());
  t.is(clock.pendingTimers, 0);
  await t.notThrowsAsync(store.close());
});

test("the queue keeps its order, and tokens still rise, if the wall clock steps back", async (t) => {
  let steppedMs = 0;
  const clock = new (class extends VirtualClock {
    override epochMicroseconds(): number {
      return super.epochMicroseconds() + steppedMs * 1_000;
    }
  })();
  const store = memoryStore({ clock });
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  const before = await acquire(store, key, holder, { fencing: true });
  await queued(store, key, first);
  steppedMs = -60_000;
  await queued(store, key, second);
  await queued(store, key, first);
  await release(store, key, holder);
  const requestId = await acquiredInTurn(store, key, first);
  await queued(store, key, second);
  await release(store, key, requestId);
  const after = await enqueue(store, key, second, { fencing: true });
  t.true(before.acquired && after.acquired && (after.fencingToken ?? 0) > (before.fencingToken ?? Infinity));
});
