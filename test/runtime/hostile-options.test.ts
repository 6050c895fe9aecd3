import test from "ava";
import * as fc from "fast-check";
import * as lockweave from "../support/whole-runtime";
import { LockError } from "../../runtime/base/errors";
import { observeLocks } from "../../runtime/opentelemetry";
import { testLocks } from "../../runtime/testing";

// Whatever a caller passes to a public function, the call succeeds or fails with a LockError.

type Anything = (...args: unknown[]) => unknown;
const api = { ...lockweave, observeLocks, testLocks } as unknown as Readonly<Record<string, Anything>>;

function forbid(): never {
  throw new Error("nobody may look");
}

/** A call with this signal throws the signal's reason. */
const ABORTED = AbortSignal.abort();

const TRAPS = ["get", "has", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor"] as const;

/** Makes a value. fast-check itself could not print some of them. */
type Maker = () => unknown;
const made =
  (value: unknown): Maker =>
  () =>
    value;

const value: fc.Arbitrary<Maker> = fc.oneof(
  fc
    .anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withTypedArray: true,
    })
    .map(made),
  fc
    .constantFrom<unknown>(
      "1s",
      "100ms",
      "25h",
      "skip",
      "warn",
      "read",
      "default",
      "background",
      0,
      1,
      true,
      false,
    )
    .map(made),
  fc
    .constantFrom<unknown>(Symbol("s"), forbid, ABORTED, Promise.resolve(), null, undefined, 2 ** 53)
    .map(made),
  fc.subarray([...TRAPS], { minLength: 1 }).map(
    (traps): Maker =>
      () =>
        throwing(traps),
  ),
  fc.constant(revoked),
);

function throwing(traps: readonly string[]): object {
  return new Proxy({ lockTime: "1s" }, Object.fromEntries(traps.map((trap) => [trap, forbid])));
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const NAMES = [
  ..."lockTime retryTimes waitTime wait onFailure onUnreachable onLost watchdog lockAtLeast holdAtMost autoUnlock release".split(
    " ",
  ),
  ..."reentrant fencing store replicas mode permits when signal site businessFlag each key now from".split(
    " ",
  ),
  ..."patience clock longestLockTime waiting tracer meter keys defaults logger commandTimeout stores".split(
    " ",
  ),
  ..."openReleases shutdownOn announce warnAfter woven redis url tls __proto__ constructor toString".split(
    " ",
  ),
];

const name = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 1, arbitrary: fc.string() },
);

/** An options object with values or getters, which may be inherited or behind a proxy. */
const options = fc
  .record({
    entries: fc.array(fc.tuple(name, value, fc.constantFrom("value", "getter", "throws", "flips")), {
      maxLength: 4,
    }),
    holder: fc.constantFrom("itself", "a prototype", "a proxy"),
  })
  .map(({ entries, holder }): Maker => () => {
    const own = {};
    for (const [key, make, kind] of entries) {
      const given = make();
      let isSecond = false;
      const get = (): unknown => {
        if (kind === "throws") return forbid();
        isSecond = !isSecond;
        return kind === "flips" && !isSecond ? !given : given;
      };
      const how = kind === "value" ? { value: given } : { get };
      Object.defineProperty(own, key, { ...how, enumerable: true, configurable: true });
    }
    if (holder === "a prototype") return Object.create(own) as object;
    return holder === "a proxy" ? new Proxy(own, {}) : own;
  });

const argument = fc.oneof({ weight: 4, arbitrary: options }, { weight: 1, arbitrary: value });

let calls = 0;
const freshKey = (): string => `LOCK_hostile_${(calls += 1)}`;
const body = (): string => "ran";

/** The public functions, and where each gets the generated value. */
const CALLS: Readonly<Record<string, (given: unknown, other: unknown) => unknown>> = {
  "withLock, options": (given) => api["withLock"]?.(freshKey(), given, body),
  "withLock, options, several keys": (given) => api["withLock"]?.([freshKey(), freshKey()], given, body),
  "withLock, key": (given) => api["withLock"]?.(given, {}, body),
  "withLock, body": (given) => api["withLock"]?.(freshKey(), {}, typeof given === "function" ? body : given),
  "obtain, options": (given) => api["obtain"]?.(freshKey(), given),
  "obtain, keys": (given, other) => api["obtain"]?.([given, other]),
  "tryObtain, options": (given) => api["tryObtain"]?.(freshKey(), given),
  "tryObtain, key": (given) => api["tryObtain"]?.(given),
  "open, site": (given, other) => api["open"]?.(given, other),
  "open, a good site and more": (given) =>
    api["open"]?.({ ...readable(given), site: "pay", businessFlag: "pay" }, freshKey()),
  "forceRelease, options": (given) => api["forceRelease"]?.(freshKey(), given),
  "forceRelease, key": (given) => api["forceRelease"]?.(given),
  "inspect, options": (given) => api["inspect"]?.(freshKey(), given),
  "inspect, key": (given) => api["inspect"]?.(given),
  configure: (given, other) => api["configure"]?.(given, other),
  "configure, a good store and more": (given) =>
    api["configure"]?.({ ...readable(given), store: lockweave.memoryStore() }, "woven"),
  "configure, defaults": (given) =>
    api["configure"]?.({ store: lockweave.memoryStore(), defaults: given }, "woven"),
  "configure, stores": (given) =>
    api["configure"]?.({ store: lockweave.memoryStore(), stores: given }, "woven"),
  shutdown: (given) => api["shutdown"]?.(given),
  memoryStore: (given) => api["memoryStore"]?.(given),
  redisStore: (given) => api["redisStore"]?.(given),
  "quorumStore, masters": (given, other) => api["quorumStore"]?.(given, other),
  "quorumStore, options": (given) => api["quorumStore"]?.(["redis://a", "redis://a", "redis://a"], given),
  testLocks: (given) => api["testLocks"]?.(given, "woven"),
  observeLocks(given) {
    const stop = api["observeLocks"]?.(given) as () => void;
    stop();
  },
  lockKey: (given, other) => api["lockKey"]?.(given, other),
  wholeKey: (given, other) => api["wholeKey"]?.(given, other),
  jsonField: (given, other) => api["jsonField"]?.(given, other),
  when: (given) => api["when"]?.(given),
  acquire: (given) => api["acquire"]?.(given),
  retryCheck: (given) => api["retryCheck"]?.(given),
  assertHeld: (given) => api["assertHeld"]?.(given),
  runReentrant: (given) => api["runReentrant"]?.(given, body),
  fail: (given, other) => api["fail"]?.(given, other),
  release: (given) => api["release"]?.(given),
  currentLock: (given) => api["currentLock"]?.(given),
  assertWoven: (given) => api["assertWoven"]?.(given),
  extend: (given) =>
    lockweave.withLock(
      freshKey(),
      {},
      async (lock) => await (lock as unknown as Record<string, Anything>)["extend"]?.(given),
    ),
};

/** The properties that a spread can read. */
function readable(given: unknown): object {
  try {
    return { ...(given as object) };
  } catch {
    return {};
  }
}

const rejections: unknown[] = [];
const note = (reason: unknown): void => void rejections.push(reason);
process.on("unhandledRejection", note);
test.after.always(() => void process.off("unhandledRejection", note));

/** Resolves after all pending callbacks have run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test.beforeEach(() =>
  lockweave.configure({ store: lockweave.memoryStore(), woven: false, logger: { warn() {} } }),
);
test.afterEach.always(() => lockweave.shutdown({ patience: "0s" }));

const ENDS_CONFIGURATION = new Set(["configure", "shutdown", "testLocks"]);

for (const [what, use] of Object.entries(CALLS)) {
  test.serial(`${what}: any argument makes the call succeed or fail with a LockError`, async (t) => {
    const isOfConfiguration = ENDS_CONFIGURATION.has(what.split(",")[0] ?? "");
    await fc.assert(
      fc.asyncProperty(argument, argument, async (makeGiven, makeOther) => {
        if (isOfConfiguration) await lockweave.shutdown({ patience: "0s" });
        rejections.length = 0;
        const outcome = await Promise.resolve()
          .then(() => use(makeGiven(), makeOther()))
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        await settled();
        const isExpected =
          outcome === undefined || outcome instanceof LockError || outcome === ABORTED.reason;
        t.true(isExpected, String(outcome));
        t.deepEqual(rejections, []);
      }),
      { numRuns: 200 },
    );
    if (isOfConfiguration) await lockweave.shutdown({ patience: "0s" });
  });
}
