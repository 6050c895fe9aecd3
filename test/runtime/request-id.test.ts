import test from "ava";
import { createLocker } from "../../runtime/config/create-locker";
import { requestIds } from "../../runtime/base/request-id";
import { memoryStore } from "../../runtime/stores/memory";

const MANY = 2_000; // More than one batch of random bytes.

test("a request ID is the process number and 20 new hex characters", (t) => {
  const { processNumber, next } = requestIds();
  t.regex(processNumber, /^[0-9a-f]{12}$/);
  const ids = Array.from({ length: MANY }, next);
  for (const id of ids) t.regex(id, new RegExp(`^${processNumber}[0-9a-f]{20}$`));
  t.is(new Set(ids.map((id) => id.slice(12))).size, MANY);
});

test("the last 80 bits of a request ID are random", (t) => {
  const { next } = requestIds();
  let zeros = 0n;
  let ones = 0n;
  for (let count = 0; count < MANY; count += 1) {
    const bits = BigInt(`0x${next().slice(12)}`);
    ones |= bits;
    zeros |= ~bits & (2n ** 80n - 1n);
  }
  t.is(ones, 2n ** 80n - 1n);
  t.is(zeros, 2n ** 80n - 1n);
});

test("all 48 bits of a process number are random", (t) => {
  let zeros = 0n;
  let ones = 0n;
  for (let count = 0; count < 200; count += 1) {
    const bits = BigInt(`0x${requestIds().processNumber}`);
    ones |= bits;
    zeros |= ~bits & (2n ** 48n - 1n);
  }
  t.is(ones, 2n ** 48n - 1n);
  t.is(zeros, 2n ** 48n - 1n);
});

test("two generators keep their own process numbers, and share no request ID", (t) => {
  const generators = [requestIds(), requestIds()];
  const own = new Set<string>();
  for (let count = 0; count < MANY; count += 1) {
    for (const { processNumber, next } of generators) {
      const id = next();
      t.true(id.startsWith(processNumber));
      own.add(id.slice(12));
    }
  }
  t.is(own.size, 2 * MANY);
});

test("each configuration has its own process number", (t) => {
  const numberOf = (): string => createLocker({ store: memoryStore() }).newRequestId().slice(0, 12);
  t.not(numberOf(), numberOf());
});
