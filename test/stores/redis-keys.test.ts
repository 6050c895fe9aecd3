import test from "ava";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { isInSlot, auxiliaryKey } from "../../runtime/stores/redis/keys";
import { RESERVED_NAMESPACE } from "../../runtime/base/limits";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster";

// Names consist of few characters, so that braces occur in every combination.
const pieces = fc.constantFrom("{", "}", "{}", "a", "b", ":", "7", "queue:", "lockweave", "2:", "by-tag:{a}");
const texts = fc.array(pieces, { maxLength: 6 }).map((some) => some.join(""));
const prefixes = texts.filter((prefix) => !prefix.includes(RESERVED_NAMESPACE));
/** Every public function rejects keys in the reserved namespace. */
const keys = texts.filter((key) => !key.startsWith(RESERVED_NAMESPACE));
const locks = fc.record({ prefix: prefixes, key: keys });

test("the queue and the counter of a lock have names that no other lock uses", (t) => {
  fc.assert(
    fc.property(locks, locks, (one, other) => {
      const isSame = one.prefix === other.prefix && one.key === other.key;
      const names = ({ prefix, key }: typeof one): string[] => [
        prefix + auxiliaryKey("queue", prefix, key),
        prefix + auxiliaryKey("fence", prefix, key),
      ];
      const [mine, theirs] = [names(one), names(other)];
      if (mine[0] === mine[1]) return false;
      return mine.every((name, index) =>
        theirs.every((their, at) => (name === their) === (isSame && index === at)),
      );
    }),
    { numRuns: 20_000 },
  );
  t.pass();
});

test("no lock key equals the queue name of another key with the same prefix", (t) => {
  fc.assert(
    fc.property(locks, keys, ({ prefix, key }, other) => auxiliaryKey("queue", prefix, key) !== other),
    { numRuns: 5_000 },
  );
  t.is(auxiliaryKey("queue", "", "{pay}:7"), "lockweave:1:queue-by-tag:{pay}:{pay}:7");
  t.is(auxiliaryKey("queue", "", "LOCK_a"), "lockweave:1:queue:{LOCK_a}");
  t.is(auxiliaryKey("fence", "shop:", "LOCK_a"), "lockweave:1:fence:{shop:LOCK_a}");
  t.is(auxiliaryKey("queue", "", "{LOCK_a}"), "lockweave:1:queue-by-tag:{LOCK_a}:{LOCK_a}");
  t.is(auxiliaryKey("queue", "", "a}b"), "lockweave:1:queue-by-name:a}b");
});

test("Redis hashes the queue and the counter to the slot of the lock key if isInSlot() returns true", async (t) => {
  const server: RedisCluster = await startRedisCluster();
  t.teardown(() => server.stop());
  const client: Redis = server.client();
  const slot = (key: string): Promise<number> => client.cluster("KEYSLOT", key);
  let inSlot = 0;
  await fc.assert(
    fc.asyncProperty(locks, async ({ prefix, key }) => {
      if (!isInSlot(prefix, key)) return true;
      inSlot += 1;
      const [lock, ...beside] = await Promise.all([
        slot(prefix + key),
        ...(["queue", "fence"] as const).map((name) => slot(prefix + auxiliaryKey(name, prefix, key))),
      ]);
      return beside.every((one) => one === lock);
    }),
    { numRuns: 1_000 },
  );
  t.true(inSlot > 300, String(inSlot));
});
