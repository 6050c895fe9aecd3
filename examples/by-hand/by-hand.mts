import { setTimeout as sleep } from "node:timers/promises";
import { configure, lockKey, LockWaitTimeoutError, memoryStore, obtain, shutdown, withLock } from "lockweave";

const redis = process.env["REDIS_URL"];
configure(redis === undefined ? { store: memoryStore() } : { redis });

// A tag with `businessFlag=payOrder keyName=orderNo` makes the same key, so both exclude each other.
const key = lockKey("payOrder", "Test001");

// The shortest form holds the lock until the function ends.
const paid = await withLock(key, () => "paid");
console.log(`withLock: ${paid}`);

// The options are the attributes of a tag. The body gets the lock.
const receipt = await withLock(key, { lockTime: "20s", fencing: true }, async (lock) => {
  await sleep(10, undefined, { signal: lock.signal }); // Stops if the lock is lost.
  lock.assertHeld();
  console.log(`withLock: holds ${lock.key}, fencing token drawn: ${typeof lock.fencingToken === "number"}`);
  return "receipt";
});
console.log(`withLock: returned ${receipt}`);

// The lock is held until the end of the block.
{
  await using lock = await obtain(key);
  console.log(`await using: holds ${lock.key}`);

  const skipped = await withLock(key, { retryTimes: 0, onFailure: "skip" }, () => "never");
  console.log(`a second caller that skips its body: ${skipped}`);

  try {
    await obtain(key, { retryTimes: 2, waitTime: "50ms" });
  } catch (error) {
    console.log(
      `a second caller that waits: ${error instanceof LockWaitTimeoutError ? error.code : String(error)}`,
    );
  }
}

const free = await withLock(key, { retryTimes: 0, onFailure: "skip" }, () => "is free again");
console.log(`after the block: ${key} ${free}`);
await shutdown();
