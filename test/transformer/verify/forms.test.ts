import test from "ava";
import ts from "typescript";
import { FORMS } from "../../../transformer/verify/locks/forms";
import { locksIn } from "../../../transformer/verify/locks/locks";

// One fixture for each form in which a tool writes a part of the woven code.

const WOVEN = `
export async function pay(orderNo, limit) {
  const lock = lockweave.open({ site: "pay", businessFlag: "pay" }, orderNo);
  while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
  try { lockweave.assertHeld(lock); return await charge(orderNo); }
  catch (error) { throw lockweave.fail(lock, error); }
  finally { await lockweave.release(lock); }
}
`;
const OPENING = 'const lock = lockweave.open({ site: "pay", businessFlag: "pay" }, orderNo);';
const WHOLE_KEY = '{ site: "pay", key: lockweave.wholeKey`mutex:${orderNo}` });';
const KEEPS_NAMES = 'var __name = (target, value) => define(target, "name", { value, configurable: true });';

/** Returns the woven code with one text replaced everywhere, as a tool does. */
function changed(from: string, to: string): string {
  if (!WOVEN.includes(from)) throw new Error(`The woven code does not contain ${from}`);
  return WOVEN.replaceAll(from, () => to);
}

function before(text: string, code: string): string {
  return changed(text, `${code} ${text}`);
}

/** The fixtures by the examples of their forms. */
const FIXTURES: Readonly<Record<string, string>> = {
  "acquire(lock)": changed("lockweave.", ""),
  "r.Xc(lock)": ["open", "acquire", "retryCheck", "assertHeld", "fail", "release"].reduce(
    (code, step, at) => code.replaceAll(`lockweave.${step}`, `r.X${at}`),
    WOVEN,
  ),
  "lockweave.acquire(lock)": WOVEN,
  'lockweave["acquire"](lock)': WOVEN.replaceAll(/lockweave\.(\w+)/g, 'lockweave["$1"]'),
  "(0, lockweave.acquire)(lock)": WOVEN.replaceAll(/lockweave\.(\w+)/g, "(0, lockweave.$1)"),
  "await lockweave.acquire(lock)": changed(
    "!(await lockweave.acquire(lock))",
    "!await lockweave.acquire(lock)",
  ),
  "yield lockweave.acquire(lock)": changed("await", "yield").replace(
    /async function pay\(orderNo, limit\) (.*)$/s,
    "function pay(orderNo, limit) { return __awaiter(this, void 0, void 0, function* () $1); }",
  ),
  "yield __await(lockweave.acquire(lock))": WOVEN.replaceAll(
    /await (\w+\.?\w+\([^()]*\))/g,
    "yield __await($1)",
  ).replace(
    /async function pay\(orderNo, limit\) (.*)$/s,
    "function pay(orderNo, limit) { return __asyncGenerator(this, arguments, function* () $1); }",
  ),
  "yield new Action(Kind.AWAIT_VALUE, lockweave.acquire(lock))": WOVEN.replaceAll(
    /await (\w+\.?\w+\([^()]*\))/g,
    "yield new Action(Kind.AWAIT_VALUE, $1)",
  ).replace(
    /async function pay\(orderNo, limit\) (.*)$/s,
    "function pay(orderNo, limit) { return new Wrapper(function* () $1()); }",
  ),
  "const lock = lockweave.open(...);": WOVEN,
  "for (var lock = lockweave.open(...); !(await lockweave.acquire(lock)); )": changed(
    OPENING,
    `for (${OPENING.replace("const", "var")}`,
  ).replace("while (!(await lockweave.acquire(lock)))", "!(await lockweave.acquire(lock)); )"),
  "lock = lockweave.open(...);": changed("const lock =", "var lock; lock ="),
  "for (lock = lockweave.open(...); !(await lockweave.acquire(lock)); )": changed(
    OPENING,
    OPENING.replace("const lock", "for (limit"),
  )
    .replace("while (!(await lockweave.acquire(lock)))", "!(await lockweave.acquire(lock)); )")
    .replaceAll("(lock", "(limit"),
  "lockweave.needs(...), lock = lockweave.open(...);": changed(
    "const lock =",
    'var lock; lockweave.needs({ site: "bill", businessFlag: "bill" }, orderNo), lock =',
  ),
  "lockweave.wholeKey`mutex:${orderNo}`": changed(
    '{ site: "pay", businessFlag: "pay" }, orderNo);',
    WHOLE_KEY,
  ),
  'lockweave.wholeKey(_a || (_a = __makeTemplateObject(["mutex:", ""], ["mutex:", ""])), orderNo)': changed(
    '{ site: "pay", businessFlag: "pay" }, orderNo);',
    WHOLE_KEY.replace(
      "`mutex:${orderNo}`",
      '(_a || (_a = __makeTemplateObject(["mutex:", ""], ["mutex:", ""])), orderNo)',
    ),
  ),
  '"use strict";': before("const lock", '"use strict";'),
  "var { id } = _a;": before("const lock", "var { id } = _a;"),
  "if (limit === void 0) { limit = 5; }": before("const lock", "if (limit === void 0) { limit = 5; }"),
  "limit = limit === void 0 ? 5 : limit;": before("const lock", "limit = limit === void 0 ? 5 : limit;"),
  "function inner() { work(); }": before("lockweave.assertHeld", "function inner() { work(); }"),
  "let inner2 = function () { work(); }, inner = inner2, other;": before(
    "lockweave.assertHeld",
    "let inner2 = function () { work(); }, inner = inner2, other;",
  ),
  "void arguments;": before("lockweave.assertHeld", "void arguments;"),
  '__name(inner, "inner");': `${KEEPS_NAMES}${before(
    "lockweave.assertHeld",
    'function inner() {} __name(inner, "inner");',
  )}`,
};

test("every form has a fixture, and every fixture has a form", (t) => {
  t.deepEqual(FORMS.map(({ example }) => example).toSorted(), Object.keys(FIXTURES).toSorted());
});

test("a lock counts if a minifier merges `void arguments;` with the call of the body, with or without `void`", (t) => {
  for (const merged of ["void arguments, ", "arguments, ", "void arguments_1, "]) {
    const reentrant = WOVEN.replace('businessFlag: "pay"', 'businessFlag: "pay", reentrant: true').replace(
      "lockweave.assertHeld(lock); return await charge(orderNo);",
      () => `return ${merged}await lockweave.runReentrant(lock, async () => charge(orderNo));`,
    );
    t.deepEqual(locksIn(ts, "pay.js", reentrant).broken, [], reentrant);
  }
});

for (const { example, by } of FORMS) {
  test(`a lock counts in the form \`${example}\`, which comes from ${by}`, (t) => {
    const fixture = FIXTURES[example] ?? "";
    const { locks, broken } = locksIn(ts, "pay.js", fixture);
    t.deepEqual(
      locks.filter(({ tag }) => tag === "redisLock").map(({ site }) => site),
      ["pay"],
      fixture,
    );
    t.deepEqual(broken, []);
  });
}
