import test from "ava";
import ts from "typescript";
import type { OptionRow } from "../../../runtime/attributes/table";
import { OPTIONS } from "../../../runtime/attributes/tag-attributes";
import { assertForEach, DEFAULTS, settle, type Settings } from "../../../runtime/lock/settings";
import { OPTION_READERS, readDefaults } from "../../../transformer/read/attributes";
import { weave } from "../../../transformer/weave/weave";

// Every pair of attributes either works or is rejected, in tags and in options that code passes.

/** A value of each attribute that is not its default, except for switches. */
const OTHER_VALUES: Readonly<Record<string, string>> = {
  lockTime: "60s",
  retryTimes: "1",
  waitTime: "50ms",
  wait: "2s",
  onFailure: "skip",
  onUnreachable: "skip",
  onLost: "warn",
  lockAtLeast: "10s",
  holdAtMost: "5m",
  release: "background",
  store: "other",
  replicas: "1",
  mode: "read",
  permits: "5",
};

const OPTION_ROWS: readonly (readonly [string, OptionRow])[] = Object.entries(OPTIONS);

/** A value of each attribute that is not its default. */
const VALUES: Readonly<Record<string, string>> = Object.fromEntries(
  OPTION_ROWS.map(([name, row]) => [
    name,
    row.kind === "switch" ? String(!row.default) : (OTHER_VALUES[name] ?? ""),
  ]),
);

/** The value with which an attribute is off. `holdAtMost` has none. */
const OFF: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    OPTION_ROWS.flatMap(([name, row]) => (row.kind === "switch" ? [[name, String(row.default)]] : [])),
  ),
  lockAtLeast: "0s",
  release: "awaited",
  replicas: "0",
  mode: "write",
  permits: "1",
};

/** These attributes are about one lock, so no configuration has a default for them. */
const WITHOUT_DEFAULT: ReadonlySet<string> = new Set(["mode", "permits", "each"]);

/** Two ways to share a lock. A tag names only one of them, even if it is off. */
const SHARING = "mode=read permits=5";

/** The two ways to give a wait budget. One place gives one of them, and it replaces the other one of the defaults. */
const BUDGETS = ["retryTimes=1 wait=2s", "waitTime=50ms wait=2s"];

const REFUSED = [
  ...BUDGETS,
  "watchdog=false holdAtMost=5m",
  "lockAtLeast=10s autoUnlock=false",
  "lockAtLeast=10s reentrant=true",
  "lockAtLeast=10s mode=read",
  "lockAtLeast=10s permits=5",
  "lockAtLeast=10s each=true",
  "autoUnlock=false release=background",
  "autoUnlock=false each=true",
  "fencing=true mode=read",
  "fencing=true permits=5",
  "fencing=true each=true",
  "replicas=1 mode=read",
  "replicas=1 permits=5",
  SHARING,
];

const FLAG_AND_KEY = "businessFlag=pay keyName=orderNo";

function diagnosed(
  attributes: string,
  defaults: Readonly<Record<string, unknown>> = {},
): { readonly at: string; readonly message: string }[] {
  const text = `export {};\n/** @redisLock ${attributes} */\nasync function pay(orderNo: string): Promise<void> {}\n`;
  const options = { ts, module: "esm", defaults: readDefaults(defaults).defaults } as const;
  const { diagnostics = [] } = weave("pay.ts", text, options) ?? {};
  return diagnostics.map(({ code, start, end, message }) => ({
    at: `${code} ${text.slice(start, end)}`,
    message,
  }));
}

function problemsOf(attributes: string): readonly string[] {
  return diagnosed(`${FLAG_AND_KEY} ${attributes}`).map(({ at }) => at);
}

function toOptions(attributes: string): object {
  const entries = attributes.split(" ").map((attribute): [string, unknown] => {
    const [name = "", value = ""] = attribute.split("=");
    return [name, /^(?:true|false|\d+)$/.test(value) ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries);
}

/** Options in code have no `each`, so it is checked separately. */
function settled(attributes: string, defaults = DEFAULTS): Settings {
  const { each, ...options } = toOptions(attributes) as { readonly each?: boolean };
  const settings = settle(options, defaults);
  if (each === true) assertForEach(settings);
  return settings;
}

test("this test has a value other than the default for every attribute", (t) => {
  t.deepEqual(Object.keys(VALUES), Object.keys(OPTION_READERS));
  for (const [name, row] of OPTION_ROWS) {
    t.not(VALUES[name], "", name);
    t.not(VALUES[name], String(row.default), name);
  }
});

test("every pair of attributes works in tags and in options, or is rejected at one of the two", (t) => {
  const values = Object.entries(VALUES).map(([name, value]) => `${name}=${value}`);
  const pairs = values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one} ${other}`));
  const refused = pairs.filter((pair) => problemsOf(pair).length > 0);
  t.deepEqual(refused, REFUSED);
  for (const pair of REFUSED) {
    const [reported = "", ...others] = problemsOf(pair);
    t.regex(reported, /^LW11\d\d /);
    t.true(pair.split(" ").includes(reported.replace(/^\w+ /, "")), reported);
    t.deepEqual(others, []);
    t.throws(() => settled(pair), { code: "LOCK_BAD_OPTION" });
  }
  for (const pair of pairs) if (!refused.includes(pair)) t.notThrows(() => settled(pair));
});

test("a rejected pair works if one attribute is off, and is rejected if one is a configured default", (t) => {
  for (const pair of REFUSED.filter((one) => !BUDGETS.includes(one))) {
    const [first = "", second = ""] = pair.split(" ");
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const [name = ""] = one.split("=");
      const off = OFF[name];
      if (off !== undefined && pair !== SHARING) {
        const attributes = `${name}=${off} ${other}`;
        t.deepEqual(problemsOf(attributes), [], attributes);
        t.notThrows(() => settled(attributes), attributes);
      }
      if (WITHOUT_DEFAULT.has(name)) continue;
      const found = diagnosed(`${FLAG_AND_KEY} ${other}`, { ...toOptions(one) });
      t.deepEqual(
        found.map(({ at }) => at.replace(/^LW11\d\d /, "")),
        [other],
        pair,
      );
      t.throws(() => settled(other, settled(one)), { code: "LOCK_BAD_OPTION" }, pair);
    }
  }
});

test("autoUnlock=onError conflicts with holdAtMost, and with all that autoUnlock=false conflicts with", (t) => {
  const others = Object.entries(VALUES).filter(([name]) => name !== "autoUnlock");
  const refusedWith = (value: string): readonly string[] =>
    others
      .map(([name, other]) => `autoUnlock=${value} ${name}=${other}`)
      .filter((pair) => problemsOf(pair).length > 0)
      .map((pair) => pair.replace(`=${value}`, ""));
  const added = `autoUnlock holdAtMost=${VALUES["holdAtMost"]}`;
  t.true(refusedWith("onError").includes(added));
  t.deepEqual(
    refusedWith("onError").filter((pair) => pair !== added),
    refusedWith("false"),
  );
  t.is(refusedWith("false").length, 3);
  for (const pair of refusedWith("onError"))
    t.throws(() => settled(pair.replace("autoUnlock", "autoUnlock=onError")), { code: "LOCK_BAD_OPTION" });
});

test("a tag's wait budget replaces that of the project's defaults, and one place cannot combine two budgets", (t) => {
  for (const pair of BUDGETS) {
    const [first = "", second = ""] = pair.split(" ");
    for (const [inner, outer] of [
      [first, second],
      [second, first],
    ] as const) {
      t.deepEqual(diagnosed(`${FLAG_AND_KEY} ${inner}`, { ...toOptions(outer) }), [], pair);
      t.notThrows(() => settled(inner, settled(outer)), pair);
    }
    t.regex(
      readDefaults(toOptions(pair)).problems[0]?.message ?? "",
      /`defaults`: `\w+` and `wait` cannot be combined: `wait` is the whole wait budget\.$/,
    );
  }
  t.deepEqual(problemsOf("retryTimes=3 wait=5s"), ["LW1130 retryTimes=3"], "with its default value, too");
  t.deepEqual(problemsOf("wait=5s waitTime=5s"), ["LW1130 waitTime=5s"]);
  const options = {
    ts,
    module: "esm",
    defaults: readDefaults({ retryTimes: 7, waitTime: "1s" }).defaults,
  } as const;
  const text =
    "export {};\n/** @redisLock businessFlag=pay wait=5s */\nasync function pay(): Promise<void> {}\n";
  t.true(weave("pay.ts", text, options)?.code.includes('businessFlag: "pay", wait: "5s" }'));
});

test("the plugin's defaults are literal, and an expression in a tag applies before them", (t) => {
  for (const [name, value] of [
    ["lockTime", "${config.lockTime}"],
    ["retryTimes", "${config.retries}"],
  ] as const) {
    t.regex(
      readDefaults({ [name]: value }).problems[0]?.message ?? "",
      new RegExp(`Expected \`${name}\` to be`),
    );
  }
  const options = { ts, module: "esm", defaults: readDefaults({ lockTime: "10s" }).defaults } as const;
  const text =
    'export {};\n/** @redisLock businessFlag=pay lockTime="${n}s" */\nasync function pay(n: number): Promise<void> {}\n';
  const site = 'businessFlag: "pay", projectDefaults: "lockTime=10s", lockTime: `${n}s` }';
  t.true(weave("pay.ts", text, options)?.code.includes(site));
});

test("locks with permits from an expression may have any number, so they do not conflict", (t) => {
  const tags = ['permits="${limit}"', "permits=5", 'permits="${limit + 1}"'].map(
    (permits) =>
      `/** @redisLock businessFlag=pay ${permits} */\nexport async function f${permits.length}(limit: number): Promise<void> {}\n`,
  );
  t.deepEqual(weave("pay.ts", tags.join(""), { ts, module: "esm" })?.diagnostics ?? [], []);
});

test("the message about each rejected pair gives the reason", (t) => {
  for (const pair of REFUSED) {
    const [found] = diagnosed(`${FLAG_AND_KEY} ${pair}`);
    if (pair === SHARING || /fencing=true (?:mode|permits)/.test(pair)) continue; // Their messages have a different form.
    t.regex(found?.message ?? "", / cannot be combined: \S[^:]+\. Fix: remove one of them\.$/, pair);
  }
});

test("a whole key cannot be combined with attributes that make a key of parts", (t) => {
  const whole = `key="k:\${orderNo}"`;
  t.deepEqual(diagnosed(whole), []);
  for (const [words, at] of [
    ["businessFlag=pay", "LW1130 businessFlag=pay"],
    ["keyName=orderNo", "LW1130 keyName=orderNo"],
    ["each=true", "LW1130 each=true"],
  ] as const) {
    t.true(
      diagnosed(`${whole} ${words}`).some((one) => one.at === at),
      words,
    );
  }
  t.deepEqual(diagnosed(`${whole} each=false`), []);
});

test("a fencing token can be combined with one permit, but not with two", (t) => {
  t.deepEqual(problemsOf("permits=1 fencing=true"), []);
  t.deepEqual(problemsOf("permits=2 fencing=true"), ["LW1123 fencing=true"]);
});

test("holdAtMost must be at least lockTime", (t) => {
  t.deepEqual(problemsOf("lockTime=10s holdAtMost=9999ms"), ["LW1132 holdAtMost=9999ms"]);
  t.deepEqual(problemsOf("lockTime=10s holdAtMost=10s"), []);
});

test("a conflict with a default of the project is reported at the attribute of the tag", (t) => {
  const reported = (attributes: string, defaults: Readonly<Record<string, unknown>>): string[] =>
    diagnosed(`${FLAG_AND_KEY} ${attributes}`, defaults).map(({ at }) => at);
  t.deepEqual(reported("lockTime=10s", { lockAtLeast: "20s" }), ["LW1131 lockTime=10s"]);
  t.deepEqual(reported("lockAtLeast=20s", { lockTime: "10s" }), ["LW1131 lockAtLeast=20s"]);
  t.deepEqual(reported("lockTime=10s", { holdAtMost: "5s" }), ["LW1132 lockTime=10s"]);
  t.deepEqual(reported("holdAtMost=5s", { lockTime: "10s" }), ["LW1132 holdAtMost=5s"]);
  t.deepEqual(reported("autoUnlock=false", { lockAtLeast: "10s" }), ["LW1130 autoUnlock=false"]);
  t.deepEqual(reported("", { lockAtLeast: "20s", lockTime: "10s" }), ["LW1131 @redisLock"]);
});

test("a count with its default value can be combined with every attribute, except permits with mode", (t) => {
  for (const count of ["replicas", "permits"]) {
    for (const [name, value] of Object.entries(VALUES)) {
      const attributes = `${count}=${OFF[count]} ${name}=${value}`;
      if (name === count) continue;
      const isSharing = count === "permits" && name === "mode";
      t.deepEqual(problemsOf(attributes), isSharing ? ["LW1122 permits=1"] : [], attributes);
    }
  }
});

test("lockAtLeast must be at most lockTime", (t) => {
  t.deepEqual(problemsOf("lockTime=10 lockAtLeast=10001ms"), ["LW1131 lockAtLeast=10001ms"]);
  t.deepEqual(problemsOf("lockTime=10 lockAtLeast=10s"), []);
  t.throws(() => settle({ lockAtLeast: "31s" }, DEFAULTS), {
    code: "LOCK_BAD_OPTION",
    message: /`lockAtLeast` to be at most `lockTime`.*got 31000 ms for a lock time of 30000 ms/,
  });
});
