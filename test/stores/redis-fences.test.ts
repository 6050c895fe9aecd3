import test from "ava";
import { hearing } from "../../runtime/stores/contract";
import {
  drop,
  newId,
  newKey,
  place,
  placing,
  renewal,
  take,
  takenInTurn,
  WITHIN_MS,
} from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";

const HOUR_MS = 3_600_000;

/** Far more than the way from the server takes. */
const LOCK_TIME_MS = 600_000;
const WITH_TOKEN = { fencing: true, lockTimeMs: LOCK_TIME_MS };

/** The ways in which the holder of a new key may have come to its token. */
const WAYS: Record<string, (store: Store, key: string) => Promise<unknown>> = {
  "by a take": (store, key) => take(store, key, newId(), WITH_TOKEN),
  "by a place that is the first": (store, key) => place(store, key, newId(), WITH_TOKEN),
  "by its turn": async (store, key) => {
    const [holder, waiting] = [newId(), newId()];
    await take(store, key, holder);
    await place(store, key, waiting);
    await drop(store, key, holder);
    await takenInTurn(store, key, waiting, WITH_TOKEN);
  },
  "from the holder before it": async (store, key) => {
    const requestId = newId();
    await take(store, key, requestId);
    await store.next({ key, requestId }, placing(key, newId(), WITH_TOKEN), WITHIN_MS);
  },
  "by a renewal": async (store, key) => {
    const requestId = newId();
    await take(store, key, requestId);
    await store.renew([{ ...renewal(key, requestId, LOCK_TIME_MS), fencing: true }], WITHIN_MS);
  },
};

test("the counter of the tokens outlives the lock by an hour, however the token was drawn", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const store = redisStore(server.client());
  t.teardown(() => store.close());
  await hearing(store);
  for (const [way, draw] of Object.entries(WAYS)) {
    const key = newKey();
    await draw(store, key);
    const pttl = await server.client().pttl(`lockweave:2:fence:{${key}}`);
    t.true(pttl > HOUR_MS + LOCK_TIME_MS / 2 && pttl <= HOUR_MS + LOCK_TIME_MS, `${way}: ${pttl}`);
  }
});

test("the same holds in a cluster, whose PUBLISH counts one node's listeners", async (t) => {
  const server = await startRedisCluster();
  t.teardown(server.stop);
  const store = redisStore(server.cluster());
  t.teardown(() => store.close());
  for (const [way, draw] of Object.entries(WAYS)) {
    const key = newKey();
    await draw(store, key);
    const pttl = await server.client().pttl(`lockweave:2:fence:{${key}}`);
    t.true(pttl > HOUR_MS + LOCK_TIME_MS / 2 && pttl <= HOUR_MS + LOCK_TIME_MS, `${way}: ${pttl}`);
  }
});
