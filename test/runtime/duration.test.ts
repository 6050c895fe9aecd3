import { inspect } from "node:util";
import test from "ava";
import { milliseconds } from "../../runtime/base/duration";
import { LockOptionError } from "../../runtime/base/errors";

for (const [text, ms] of [
  ["500ms", 500],
  ["0ms", 0],
  ["20s", 20_000],
  ["1.5s", 1_500],
  ["2m", 120_000],
  ["0.5m", 30_000],
  ["1h", 3_600_000],
  ["24h", 86_400_000],
  ["1440m", 86_400_000],
] as const) {
  test(`parses ${text} as ${ms} ms`, (t) => {
    t.is(milliseconds("lockTime", text), ms);
  });
}

for (const text of ["1.001s", "0.29m", "100.5ms", "1.0005s"]) {
  test(`parses ${text} as a whole number of milliseconds, without a rounding error`, (t) => {
    t.true(Number.isInteger(milliseconds("lockTime", text)));
  });
}

for (const value of [
  "",
  "s",
  "30 s",
  " 30s",
  "30s ",
  "30S",
  "30sec",
  "-1s",
  "+1s",
  "1e3s",
  ".5s",
  "5.s",
  "1,5s",
  "Infinitys",
  "30s\n",
  30n,
  null,
  undefined,
  {},
  ["30s"],
]) {
  test(`rejects ${inspect(value)} as a duration`, (t) => {
    t.throws(() => milliseconds("lockTime", value), {
      instanceOf: LockOptionError,
      code: "LOCK_BAD_OPTION",
      message: `Expected \`lockTime\` to be a duration such as "30s" or "500ms", got ${inspect(value)}`,
    });
  });
}

for (const value of [30, "30", 1.5]) {
  test(`suggests units for ${inspect(value)}`, (t) => {
    t.throws(() => milliseconds("lockTime", value), {
      instanceOf: LockOptionError,
      message: `Expected \`lockTime\` to be a duration such as "30s" or "500ms", got ${inspect(value)}. Fix: write the unit, "${value}s" or "${value}ms"`,
    });
  });
}

test("rejects a duration below the minimum", (t) => {
  t.is(milliseconds("lockTime", "100ms", 100), 100);
  t.throws(() => milliseconds("lockTime", "99ms", 100), {
    instanceOf: LockOptionError,
    message: `Expected \`lockTime\` to be a duration such as "30s" or "500ms" of at least 100 ms, got '99ms'`,
  });
});

test("rejects a duration above 24 hours", (t) => {
  t.throws(() => milliseconds("waitTime", "86400001ms"), {
    instanceOf: LockOptionError,
    message: `Expected \`waitTime\` to be a duration such as "30s" or "500ms" of at most 24 hours, got '86400001ms'`,
  });
});
