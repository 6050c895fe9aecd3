import test from "ava";
import ts from "typescript";
import { assertForEach, DEFAULTS, settle, type Settings } from "../../../runtime/lock/settings";
import { OPTION_READERS, readDefaults } from "../../../transformer/read/options";
import { weave } from "../../../transformer/weave/weave";

// Every pair of attributes: those that are refused, and that all others work, in tags and by hand.

/** A value for each that is not its default. */
const SAID: Readonly<Record<string, string>> = {
  lockTime: "60s",
  retryTimes: "1",
  waitTime: "50ms",
  onFailure: "skip",
  onLost: "warn",
  watchdog: "false",
  lockAtLeast: "10s",
  holdAtMost: "5m",
  autoUnlock: "false",
  release: "background",
  reentrant: "true",
  fencing: "true",
  store: "other",
  replicas: "1",
  mode: "read",
  permits: "5",
  each: "true",
};

const REFUSED = [
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
  "mode=read permits=5",
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

function byHand(attributes: string): object {
  const entries = attributes.split(" ").map((attribute): [string, unknown] => {
    const [name = "", value = ""] = attribute.split("=");
    return [name, /^(?:true|false|\d+)$/.test(value) ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries);
}

/** Which keys there are is no option by hand. */
function settled(attributes: string): Settings {
  const { each, ...options } = byHand(attributes) as { readonly each?: boolean };
  const settings = settle(options, DEFAULTS);
  if (each === true) assertForEach(settings);
  return settings;
}

test("every attribute has its place in the table of pairs", (t) => {
  t.deepEqual(Object.keys(SAID), Object.keys(OPTION_READERS));
});

test("every pair of attributes works, in tags and by hand, but for those that are refused at their words", (t) => {
  const said = Object.entries(SAID).map(([name, value]) => `${name}=${value}`);
  const pairs = said.flatMap((one, index) => said.slice(index + 1).map((other) => `${one} ${other}`));
  const refused = pairs.filter((pair) => problemsOf(pair).length > 0);
  t.deepEqual(refused, REFUSED);
  for (const pair of REFUSED) {
    const [told = "", ...others] = problemsOf(pair);
    t.regex(told, /^LW11\d\d /);
    t.true(pair.split(" ").includes(told.replace(/^\w+ /, "")), told);
    t.deepEqual(others, []);
    t.throws(() => settled(pair), { code: "LOCK_BAD_OPTION" });
  }
  for (const pair of pairs) if (!refused.includes(pair)) t.notThrows(() => settled(pair));
});

test("one of a pair may be a default of the project, or stand where it has none", (t) => {
  t.deepEqual(problemsOf("lockAtLeast=0s autoUnlock=false"), []);
  t.deepEqual(problemsOf("lockAtLeast=10s autoUnlock=true"), []);
  t.throws(() => settle({ lockAtLeast: "10s" }, { ...DEFAULTS, autoUnlock: false }), {
    code: "LOCK_BAD_OPTION",
  });
});

test("of each refused pair it is told why", (t) => {
  for (const pair of REFUSED) {
    const [found] = diagnosed(`${FLAG_AND_KEY} ${pair}`);
    if (pair === "mode=read permits=5" || /fencing=true (?:mode|permits)/.test(pair)) continue; // In other words.
    t.regex(found?.message ?? "", / cannot be combined: \S[^:]+\. Remove one of them\.$/, pair);
  }
});

test("a whole key goes with nothing that makes one of parts", (t) => {
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

test("a token goes with one permit, of which there is no other", (t) => {
  t.deepEqual(problemsOf("permits=1 fencing=true"), []);
  t.deepEqual(problemsOf("permits=2 fencing=true"), ["LW1123 fencing=true"]);
});

test("holdAtMost is at least lockTime", (t) => {
  t.deepEqual(problemsOf("lockTime=10s holdAtMost=9999ms"), ["LW1132 holdAtMost=9999ms"]);
  t.deepEqual(problemsOf("lockTime=10s holdAtMost=10s"), []);
});

test("where one of two is the project's default, the words of the other are told", (t) => {
  const told = (attributes: string, defaults: Readonly<Record<string, unknown>>): string[] =>
    diagnosed(`${FLAG_AND_KEY} ${attributes}`, defaults).map(({ at }) => at);
  t.deepEqual(told("lockTime=10s", { lockAtLeast: "20s" }), ["LW1131 lockTime=10s"]);
  t.deepEqual(told("lockAtLeast=20s", { lockTime: "10s" }), ["LW1131 lockAtLeast=20s"]);
  t.deepEqual(told("lockTime=10s", { holdAtMost: "5s" }), ["LW1132 lockTime=10s"]);
  t.deepEqual(told("holdAtMost=5s", { lockTime: "10s" }), ["LW1132 holdAtMost=5s"]);
  t.deepEqual(told("autoUnlock=false", { lockAtLeast: "10s" }), ["LW1130 autoUnlock=false"]);
  t.deepEqual(told("", { lockAtLeast: "20s", lockTime: "10s" }), ["LW1131 @redisLock"]);
});

test("a count with its default value goes with every attribute", (t) => {
  for (const attributes of [
    "replicas=0 mode=read",
    "replicas=0 permits=5",
    "permits=1 lockAtLeast=1s",
    "replicas=1 permits=1",
  ])
    t.deepEqual(problemsOf(attributes), [], attributes);
});

test("lockAtLeast is at most lockTime", (t) => {
  t.deepEqual(problemsOf("lockTime=10 lockAtLeast=10001ms"), ["LW1131 lockAtLeast=10001ms"]);
  t.deepEqual(problemsOf("lockTime=10 lockAtLeast=10s"), []);
  t.throws(() => settle({ lockAtLeast: "31s" }, DEFAULTS), {
    code: "LOCK_BAD_OPTION",
    message: /`lockAtLeast` to be at most `lockTime`.*got 31000 ms and 30000 ms/,
  });
});
