import { inspect } from "node:util";
import test from "ava";
import { LockOptionError } from "../../runtime/base/errors";
import { CallSites } from "../../runtime/lock/locker";
import { DEFAULTS, LOCK_OPTIONS, settle } from "../../runtime/lock/settings";
import { formatValue } from "../../runtime/base/format-value";

test("the defaults apply if no option is given", (t) => {
  t.like(settle({}, DEFAULTS), {
    lockTimeMs: 30_000,
    retryTimes: 3,
    waitTimeMs: 5_000,
    waitMs: undefined,
    onFailure: "throw",
    onUnreachable: "throw",
    onLost: "throw",
    watchdog: true,
    lockAtLeastMs: 0,
    holdAtMostMs: Infinity,
    autoUnlock: true,
    release: "awaited",
    reentrant: false,
    fencing: false,
    store: "default",
    replicas: 0,
    mode: "write",
    permits: 1,
  });
});

for (const [option, value, settled] of [
  ["lockTime", "20s", { lockTimeMs: 20_000 }],
  ["lockTime", "100ms", { lockTimeMs: 100 }],
  ["lockTime", "24h", { lockTimeMs: 86_400_000 }],
  ["retryTimes", 0, { retryTimes: 0 }],
  ["retryTimes", 1_000_000, { retryTimes: 1_000_000 }],
  ["waitTime", "0ms", { waitTimeMs: 0 }],
  ["waitTime", "2m", { waitTimeMs: 120_000 }],
  ["wait", 0, { waitMs: 0 }],
  ["wait", "0s", { waitMs: 0 }],
  ["wait", "5s", { waitMs: 5_000 }],
  ["wait", "24h", { waitMs: 86_400_000 }],
  ["wait", "forever", { waitMs: Infinity }],
  ["onFailure", "throw", { onFailure: "throw" }],
  ["onFailure", "skip", { onFailure: "skip" }],
  ["onUnreachable", "throw", { onUnreachable: "throw" }],
  ["onUnreachable", "skip", { onUnreachable: "skip" }],
  ["onLost", "throw", { onLost: "throw" }],
  ["onLost", "warn", { onLost: "warn" }],
  ["watchdog", false, { watchdog: false }],
  ["watchdog", true, { watchdog: true }],
  ["holdAtMost", "30s", { holdAtMostMs: 30_000 }],
  ["autoUnlock", false, { autoUnlock: false }],
  ["autoUnlock", true, { autoUnlock: true }],
  ["autoUnlock", "onError", { autoUnlock: "onError" }],
  ["reentrant", true, { reentrant: true }],
  ["reentrant", false, { reentrant: false }],
  ["fencing", true, { fencing: true }],
  ["fencing", false, { fencing: false }],
] as const) {
  test(`${option} may be ${inspect(value)}`, (t) => {
    t.deepEqual(settle({ [option]: value }, DEFAULTS), { ...DEFAULTS, ...settled });
  });
}

const DURATION = 'a duration such as "30s" or "500ms"';

for (const [option, value, expected] of [
  ["lockTime", "99ms", `${DURATION} of at least 100 ms`],
  ["lockTime", "25h", `${DURATION} of at most 24 hours`],
  ["lockTime", 30, DURATION],
  ["lockTime", null, DURATION],
  ["waitTime", 5_000, DURATION],
  ["waitTime", "-1s", DURATION],
  ["wait", 5, `${DURATION}, 0, or "forever"`],
  ["wait", "5", `${DURATION}, 0, or "forever"`],
  ["wait", "25h", `${DURATION} of at most 24 hours, 0, or "forever"`],
  ["wait", "endless", `${DURATION}, 0, or "forever"`],
  ["wait", Infinity, `${DURATION}, 0, or "forever"`],
  ["wait", null, `${DURATION}, 0, or "forever"`],
  ["retryTimes", -1, "a whole number from 0 to 1000000"],
  ["retryTimes", 1.5, "a whole number from 0 to 1000000"],
  ["retryTimes", Number.NaN, "a whole number from 0 to 1000000"],
  ["retryTimes", 1_000_001, "a whole number from 0 to 1000000"],
  ["retryTimes", "3", "a whole number from 0 to 1000000"],
  ["onFailure", "ignore", '"throw" or "skip"'],
  ["onFailure", Error, '"throw" or "skip"'],
  ["onUnreachable", "run", '"throw" or "skip"'],
  ["onLost", "skip", '"throw" or "warn"'],
  ["onLost", null, '"throw" or "warn"'],
  ["watchdog", 1, "true or false"],
  ["autoUnlock", "false", 'true, false, or "onError"'],
  ["reentrant", null, "true or false"],
  ["fencing", {}, "true or false"],
] as const) {
  const written = typeof value === "number" || typeof value === "string" ? String(value) : "";
  const hasNoUnit = expected.startsWith(DURATION) && /^\d+$/.test(written);
  test(`${option} cannot be ${inspect(value)}`, (t) => {
    t.throws(() => settle({ [option]: value }, DEFAULTS), {
      instanceOf: LockOptionError,
      code: "LOCK_BAD_OPTION",
      message: `Expected \`${option}\` to be ${expected}, got ${formatValue(value)}${hasNoUnit ? `. Fix: write the unit, "${written}s" or "${written}ms"` : ""}`,
    });
  });
}

test("an undefined option counts as not given", (t) => {
  t.deepEqual(settle({ lockTime: undefined, fencing: undefined }, DEFAULTS), DEFAULTS);
});

test("a lock's options override the defaults and do not change them", (t) => {
  const defaults = settle({ lockTime: "10s", watchdog: false }, DEFAULTS);
  t.like(settle({ lockTime: "20s" }, defaults), { lockTimeMs: 20_000, watchdog: false });
  t.is(defaults.lockTimeMs, 10_000);
  t.is(DEFAULTS.lockTimeMs, 30_000);
});

/** Reads the options of a call site. */
function read(options: object, others: readonly string[] = []): object {
  return new CallSites((own) => own).find(options, undefined, others).made;
}

for (const name of ["locktime", "ttl", "constructor", "__proto__", "toString"]) {
  test(`${name} is not an option`, (t) => {
    const options = Object.defineProperty({}, name, { value: 1, enumerable: true });
    t.throws(() => read(options), {
      instanceOf: LockOptionError,
      message: `There is no option \`${name}\`. The options are ${LOCK_OPTIONS.join(", ")}`,
    });
  });
}

test("an attribute that forms the key in a tag is rejected with a hint to lockKey()", (t) => {
  for (const name of ["businessFlag", "keyName", "key", "each"]) {
    t.throws(() => read({ [name]: "pay" }), {
      instanceOf: LockOptionError,
      message:
        /^There is no option `\w+`\. .* before the options: withLock\(lockKey\("payOrder", orderNo\), options, body\)$/,
    });
  }
});

test("option names that the caller handles are accepted and listed among the options", (t) => {
  t.deepEqual(settle({ site: "a", businessFlag: "b" }, DEFAULTS, ["site", "businessFlag"]), DEFAULTS);
  t.throws(() => read({ flag: 1 }, ["site"]), { message: /The options are site, lockTime, / });
});

test("holdAtMost is rejected if it is shorter than lockTime or combined with watchdog=false", (t) => {
  t.throws(() => settle({ lockTime: "1m", holdAtMost: "59s" }, DEFAULTS), {
    instanceOf: LockOptionError,
    message: "Expected `holdAtMost` to be at least `lockTime`, got 59000 ms for a lock time of 60000 ms",
  });
  t.throws(() => settle({ watchdog: false }, settle({ holdAtMost: "5m" }, DEFAULTS)), {
    instanceOf: LockOptionError,
    message: /`holdAtMost` and `watchdog=false` cannot be combined/,
  });
});
