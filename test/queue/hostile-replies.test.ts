import test from "ava";
import * as fc from "fast-check";
import { LockError } from "../../runtime/base/errors";
import { forceRelease } from "../../runtime/admin/force-release";
import { configure, shutdown } from "../../runtime/config/configure";
import { inspect } from "../../runtime/admin/inspect";
import type { Store } from "../../runtime/stores/port";
import { memoryStore } from "../../runtime/stores/memory";
import { batching } from "../support/batching-store";
import { Fleet } from "../support/fleet";
import { replacing, type StoreMethods } from "../support/flat-store";

// Each method of a store may reply with anything. The command fails, and nothing else does.

const SECOND = 1_000;

/** Creates a value. The generator cannot handle some of the values, because they throw on access. */
type Maker = () => unknown;

function forbid(): never {
  throw new Error("nobody may read this value");
}

const nonsense: fc.Arbitrary<Maker> = fc.oneof(
  fc
    .anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true })
    .map((value) => () => value),
  fc
    .constantFrom<unknown>(null, undefined, NaN, -1, "OK", Buffer.from("OK"), Symbol("s"))
    .map((value) => () => value),
  fc.constant(() => new Proxy({}, { get: forbid, has: forbid, getPrototypeOf: forbid })),
  fc.constant(forbid),
);

const field = fc.oneof(
  nonsense,
  fc.constantFrom<unknown>(true, false, "enqueued", undefined, 2 ** 53, 1e300).map((value) => () => value),
);

/** Objects with the fields of replies. */
const fields: fc.Arbitrary<Maker> = fc
  .dictionary(
    fc.constantFrom(
      ..."taken dropped renewed holder freeInMs fencingToken mayRunAgain next holds waiting".split(" "),
    ),
    field,
  )
  .map((makers) => () => Object.fromEntries(Object.entries(makers).map(([name, make]) => [name, make()])));

const one = fc.oneof(nonsense, fields);
const reply: fc.Arbitrary<Maker> = fc.oneof(
  one,
  fc.array(one, { maxLength: 3 }).map((makers) => () => makers.map((make) => make())),
);

const METHODS =
  "acquire acquireMany renew release releaseMany revoke peek inspect enqueue enqueueMany dequeue releaseAndEnqueue".split(
    " ",
  ) as readonly (keyof StoreMethods)[];

/** Returns the store with one method replaced by one that replies with the lie. */
function lying(store: Store, method: keyof StoreMethods, lie: Maker): Store {
  return replacing(store, { [method]: async () => await lie() });
}

const rejections: unknown[] = [];
const note = (reason: unknown): void => void rejections.push(reason);
process.on("unhandledRejection", note);
test.after.always(() => void process.off("unhandledRejection", note));

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

for (const method of METHODS) {
  test.serial(`each call ends with a result or a LockError, whatever ${method} replies`, async (t) => {
    await fc.assert(
      fc.asyncProperty(reply, fc.boolean(), async (lie, fencing) => {
        rejections.length = 0;
        const fleet = new Fleet();
        const store = lying(batching(fleet.memory), method, lie);
        const process = fleet.process({ store, commandTimeout: "1s" });
        const options = { retryTimes: 2, waitTime: "1s", lockTime: "1s", fencing } as const;
        const outcomes: unknown[] = [];
        const call = async (key: string, more: object): Promise<void> => {
          const outcome = await process
            .call(
              key,
              { ...options, ...more },
              () => new Promise((resolve) => fleet.clock.after(1_500, () => resolve(0))),
            )
            .catch((error: unknown) => error);
          outcomes.push(outcome);
        };
        const calls = [
          call("LOCK_a", {}),
          call("LOCK_a", {}),
          call("LOCK_b", { lockAtLeast: "900ms" }),
          call("LOCK_c", { fencing: false, permits: 3 }),
        ];
        await fleet.clock.advance(60 * SECOND);
        await Promise.all(calls);
        await settled();
        t.is(outcomes.length, calls.length);
        for (const outcome of outcomes)
          t.true(outcome === 0 || outcome instanceof LockError, String(outcome));
        t.deepEqual(rejections, []);
        t.true(process.isIdle);
      }),
      { numRuns: 60 },
    );
  });
}

for (const method of ["inspect", "revoke", "release"] as const) {
  test.serial(
    `inspect() and forceRelease() end with a result or a LockError, whatever ${method} replies`,
    async (t) => {
      await fc.assert(
        fc.asyncProperty(reply, fc.boolean(), async (lie, now) => {
          rejections.length = 0;
          const memory = memoryStore();
          await memory.acquire(
            { key: "LOCK_a", requestId: "a".repeat(32), lockTimeMs: 60_000, fencing: false },
            1_000,
          );
          const store = lying(memory, method, lie);
          configure({ store, woven: false });
          for (const ask of [() => inspect("LOCK_a"), () => forceRelease("LOCK_a", { now })]) {
            const outcome = await ask().then(
              () => undefined,
              (error: unknown) => error,
            );
            t.true(outcome === undefined || outcome instanceof LockError, String(outcome));
          }
          await shutdown({ patience: "0s" });
          t.deepEqual(rejections, []);
        }),
        { numRuns: 60 },
      );
    },
  );
}
