import { inspect } from "node:util";
import test from "ava";
import * as fc from "fast-check";
import { LockKeyError } from "../../runtime/base/errors";
import { lockKey, lockKeys, wholeKey, type KeyValue } from "../../runtime/base/key";

test("lockKey() makes the same key as the Java @RedisLock annotation", (t) => {
  t.is(lockKey("payOrder", "Test001"), "LOCK_payOrder_Test001");
});

for (const [flag, parts, key] of [
  ["payOrder", [], "LOCK_payOrder"],
  ["payOrder", ["a", "b"], "LOCK_payOrder_a,b"],
  ["payOrder", ["a,b"], "LOCK_payOrder_a%2Cb"],
  ["pay_order", ["a"], "LOCK_pay%5Forder_a"],
  ["payOrder", ["a_b"], "LOCK_payOrder_a_b"],
  ["100%", ["100%"], "LOCK_100%25_100%25"],
  ["payOrder", [7], "LOCK_payOrder_7"],
  [
    "payOrder",
    [0, -1.5, 12345678901234567890n, true, false],
    "LOCK_payOrder_0,-1.5,12345678901234567890,true,false",
  ],
  ["支付", ["注文-🔒"], "LOCK_支付_注文-🔒"],
  ["payOrder", [" "], "LOCK_payOrder_ "],
] as const) {
  test(`lockKey(${inspect(flag)}, ...${inspect(parts)}) is ${key}`, (t) => {
    t.is(lockKey(flag, ...parts), key);
  });
}

test("a number and its text are the same part", (t) => {
  t.is(lockKey("f", 7), lockKey("f", "7"));
  t.is(lockKey("f", -0), lockKey("f", 0));
});

for (const [part, got] of [
  [undefined, "undefined"],
  [null, "null"],
  ["", "''"],
  [Number.NaN, "NaN"],
  [Infinity, "Infinity"],
  [2 ** 53, "9007199254740992"],
  [-1e21, "-1e+21"],
  [{}, "{}"],
  [{ id: 1 }, "{ id }"],
  [[1], "[ 1 ]"],
  [Symbol("s"), "Symbol(s)"],
  [() => 1, "[Function (anonymous)]"],
] as const) {
  test(`lockKey() rejects ${got} as a key part`, (t) => {
    t.throws(() => lockKey("payOrder", "first", part as KeyValue), {
      instanceOf: LockKeyError,
      code: "LOCK_BAD_KEY",
      message: `Expected key part 2 of "payOrder" to be a non-empty string, a finite number in the safe range, a bigint, or a boolean, got ${got}`,
    });
  });
}

for (const flag of ["", undefined, null, 7, {}]) {
  test(`lockKey() rejects ${inspect(flag)} as the businessFlag`, (t) => {
    t.throws(() => lockKey(flag as string, "a"), {
      instanceOf: LockKeyError,
      message: `Expected \`businessFlag\` to be a non-empty string, got ${inspect(flag)}`,
    });
  });
}

test("lockKey() rejects lone surrogates, which would all be the same bytes in Redis", (t) => {
  t.throws(() => lockKey("payOrder", "\uD83D"), {
    instanceOf: LockKeyError,
    message: /^Expected key part 1 of "payOrder" to be well-formed Unicode, got '\\uD83D'$/i,
  });
  t.throws(() => lockKey("\uDD12"), {
    instanceOf: LockKeyError,
    message: /^Expected businessFlag to be well-formed Unicode, got '\\uDD12'$/i,
  });
});

// Strings with many of the characters that keys escape, and arbitrary strings.
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom("_", ",", "%", "5", "F", "2", "C", "a"), minLength: 1, maxLength: 6 }),
  fc.string({ unit: "binary", minLength: 1 }).filter((value) => !/\p{Surrogate}/u.test(value)),
);
const part = fc.oneof(
  text,
  fc.integer(),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value)),
  fc.bigInt(),
  fc.boolean(),
);
const name = fc.record({ flag: text, parts: fc.array(part, { maxLength: 4 }) });

test("different flags and parts never make the same key", (t) => {
  fc.assert(
    fc.property(name, name, (a, b) => {
      const sameName =
        JSON.stringify([a.flag, a.parts.map(String)]) === JSON.stringify([b.flag, b.parts.map(String)]);
      return sameName === (lockKey(a.flag, ...a.parts) === lockKey(b.flag, ...b.parts));
    }),
    { numRuns: 20_000 },
  );
  t.pass();
});

test("a key contains exactly its flag and its parts, and both can be decoded", (t) => {
  fc.assert(
    fc.property(name, ({ flag, parts }) => {
      const [, flagText = "", partsText] = /^LOCK_([^_]*)(?:_(.*))?$/s.exec(lockKey(flag, ...parts)) ?? [];
      t.is(unescape(flagText), flag);
      t.deepEqual(partsText?.split(",").map(unescape) ?? [], parts.map(String));
    }),
    { numRuns: 5_000 },
  );
});

function unescape(escaped: string): string {
  return escaped.replaceAll(/%(5F|2C|25)/g, (_, hex: string) =>
    String.fromCodePoint(Number.parseInt(hex, 16)),
  );
}

test("wholeKey makes exactly the text of its template", (t) => {
  t.is(wholeKey`mutex:${"Test001"}`, "mutex:Test001");
  t.is(wholeKey`{${"a,b%"}}/${7}:${true}:x`, "{a,b%}/7:true:x");
  t.is(wholeKey`${"a:b"}`, "a:b");
  t.is(wholeKey`nightly`, "nightly");
});

test("different values in one template never make the same whole key", (t) => {
  const value = fc.string({ unit: fc.constantFrom("a", "b", "-", ":"), maxLength: 4 });
  const made = (template: TemplateStringsArray, values: string[]): string | undefined => {
    try {
      return wholeKey(template, ...values);
    } catch (error) {
      if (error instanceof LockKeyError) return undefined;
      throw error;
    }
  };
  const templates = [":", "--", "a", "ab", "aba", ":-:"].map((between) =>
    Object.assign(["k", between, between, ":"], { raw: [] }),
  );
  let isMade = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...templates),
      fc.tuple(value, value, value),
      fc.tuple(value, value, value),
      (template, some, others) => {
        const [one, other] = [made(template, some), made(template, others)];
        if (one === undefined || other === undefined) return;
        isMade += 1;
        t.is(
          one === other,
          some.join("|") === others.join("|"),
          `${one} of ${some.join("|")} and ${others.join("|")}`,
        );
      },
    ),
    { numRuns: 2_000 },
  );
  t.true(isMade > 100);
});

for (const [what, make, message] of [
  [
    "contains the text behind it",
    () => wholeKey`mutex:${"a:b"}:${"c"}`,
    "Expected value 1 of the key \"mutex:${}:${}\" not to contain the text ':' that follows it, got 'a:b'",
  ],
  [
    "ends with the beginning of the text behind it",
    () => wholeKey`${"a-"}--${"c"}`,
    "Expected value 1 of the key \"${}--${}\" not to contain the text '--' that follows it, got 'a-'",
  ],
  [
    "directly precedes another one",
    () => wholeKey`mutex:${1}${23}`,
    'Expected text between values 1 and 2 of the key "mutex:${}${}". Without it, "1" and "23" make the same key as "12" and "3"',
  ],
  [
    "is empty",
    () => wholeKey`mutex:${""}`,
    "Expected value 1 of the key \"mutex:${}\" to be a non-empty string, a finite number in the safe range, a bigint, or a boolean, got ''",
  ],
  [
    "is missing",
    () => wholeKey`mutex:${JSON.parse("{}").orderNo as string}`,
    'Expected value 1 of the key "mutex:${}" to be a non-empty string, a finite number in the safe range, a bigint, or a boolean, got undefined',
  ],
] as const) {
  test(`wholeKey rejects a value that ${what}`, (t) => {
    t.throws(make, { instanceOf: LockKeyError, message });
  });
}

test("wholeKey throws if it is called as a function", (t) => {
  const asFunction = wholeKey as unknown as (template: unknown) => string;
  for (const template of ["mutex", undefined, ["mutex"]]) {
    t.throws(() => asFunction(template), {
      instanceOf: LockKeyError,
      message: /^Expected wholeKey to tag a template/,
    });
  }
});

test("lockKeys() rejects a list with a hole", (t) => {
  const list = ["a", "b", "c"];
  Reflect.deleteProperty(list, 1);
  t.throws(() => lockKeys("sku", [list]), {
    instanceOf: LockKeyError,
    message: /key part 1 of "sku".*got undefined/,
  });
});

test("wholeKey rejects a template with an invalid escape, because its text is unknown", (t) => {
  const fix = { instanceOf: LockKeyError, message: /Fix: write a backslash as/ };
  t.throws(() => wholeKey`C:\users:${7}`, fix);
  t.is(wholeKey`C:\\users:${7}`, "C:\\users:7");
});
