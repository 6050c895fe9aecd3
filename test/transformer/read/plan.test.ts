import test from "ava";
import ts from "typescript";
import { LOCK_ATTRIBUTES } from "../../../runtime/attributes/table";
import { readDefaults } from "../../../transformer/read/attributes";
import { weave, type Woven } from "../../../transformer/weave/weave";

/** A method with the attributes, woven. */
function wovenWith(attributes: string, defaults: object = {}): Woven | undefined {
  const text = `export class Orders {
  /** @redisLock businessFlag=pay ${attributes} */
  async pay(orderNo: string, order: Order, { tenant }: Shop) {
    return orderNo;
  }
}`;
  return weave("a.ts", text, { ts, module: "esm", defaults: readDefaults(defaults).defaults });
}

/** The arguments of the woven call of `open`: the site's object and the key. */
function opened(attributes: string, defaults: object = {}): string {
  const woven = wovenWith(attributes, defaults);
  if (woven === undefined || woven.diagnostics.length > 0) return JSON.stringify(woven?.diagnostics);
  return /\.open\((.*?)\); while/.exec(woven.code)?.[1] ?? woven.code;
}

const SITE = 'site: "Orders.pay", businessFlag: "pay"';

test("a tag without options passes only the site and the flag to open()", (t) => {
  t.is(opened(""), `{ ${SITE} }`);
});

test("a class that a compiler has turned into an expression keeps its name", (t) => {
  const text = `let Orders = class Orders {
  /** @redisLock businessFlag=pay */
  async pay() {}
};
export { Orders };`;
  t.regex(weave("a.js", text, { ts, module: "esm" })?.code ?? "", /site: "Orders\.pay"/);
});

/** The rows of the tag table that are entries of the site's object. */
const OPTIONS: readonly (readonly [attribute: string, entry: string])[] = [
  ["lockTime=20", 'lockTime: "20s"'],
  ["lockTime=0.5", 'lockTime: "0.5s"'],
  ["lockTime=500ms", 'lockTime: "500ms"'],
  ["lockTime=100ms", 'lockTime: "100ms"'],
  ["lockTime=20s", 'lockTime: "20s"'],
  ["lockTime=2m", 'lockTime: "2m"'],
  ["lockTime=24h", 'lockTime: "24h"'],
  ["lockTime='20'", 'lockTime: "20s"'],
  ["retryTimes=0", "retryTimes: 0"],
  ["retryTimes=10", "retryTimes: 10"],
  ["retryTimes=007", "retryTimes: 7"],
  ["retryTimes=1000000", "retryTimes: 1000000"],
  ["waitTime=250", 'waitTime: "250ms"'],
  ["waitTime=0", 'waitTime: "0ms"'],
  ["waitTime=5s", 'waitTime: "5s"'],
  ["waitTime=1m", 'waitTime: "1m"'],
  ["onFailure=throw", 'onFailure: "throw"'],
  ["onFailure=skip", 'onFailure: "skip"'],
  ["onLost=throw", 'onLost: "throw"'],
  ["onLost=warn", 'onLost: "warn"'],
  ["watchdog=true", "watchdog: true"],
  ["watchdog=false", "watchdog: false"],
  ["lockAtLeast=010", 'lockAtLeast: "010s"'],
  ["lockAtLeast=500ms", 'lockAtLeast: "500ms"'],
  ["autoUnlock=true", "autoUnlock: true"],
  ["autoUnlock=false", "autoUnlock: false"],
  ["autoUnlock=onError", 'autoUnlock: "onError"'],
  ["reentrant=true", "reentrant: true"],
  ["reentrant=false", "reentrant: false"],
  ["fencing=true", "fencing: true"],
  ["fencing=false", "fencing: false"],
  ["replicas=0", "replicas: 0"],
  ["replicas=2", "replicas: 2"],
  ["mode=read", 'mode: "read"'],
  ["mode=write", 'mode: "write"'],
  ["permits=05", "permits: 5"],
  ["permits=1000", "permits: 1000"],
];

for (const [attribute, entry] of OPTIONS) {
  test(`${attribute} becomes the option ${entry}`, (t) => {
    t.is(opened(attribute), `{ ${SITE}, ${entry} }`);
  });
}

test("options have the order of the tag", (t) => {
  t.is(
    opened("waitTime=1s fencing=true keyName=orderNo lockTime=1m"),
    `{ ${SITE}, waitTime: "1s", fencing: true, lockTime: "1m" }, orderNo`,
  );
});

/** The rows of the tag table that make the key. */
const KEYS: readonly (readonly [attributes: string, key: string])[] = [
  ["keyName=orderNo", "orderNo"],
  ["keyName=order.user.id", "order.user.id"],
  ["keyName=order?.user.#id", "order?.user.#id"],
  ["keyName=order.lines[0].sku", "order.lines[0].sku"],
  ["keyName=this.tenant", "this.tenant"],
  ["keyName=tenant", "tenant"],
  ["keyName=orderNo,order.id,this.tenant", "orderNo, order.id, this.tenant"],
  ['keyName="order.lines[0].sku"', "order.lines[0].sku"],
  [`keyName="[orderNo, order.id].join('/')"`, "[orderNo, order.id].join('/')"],
  ['keyName="Math.max(1, 2)",orderNo', "Math.max(1, 2), orderNo"],
  ['keyName="anywhere.at.all"', "anywhere.at.all"],
  ["keyName=orderNo keyType=VALUE", "orderNo"],
  ["keyName=order keyType=CLASS fieldName=id", "order.id"],
  ["keyName=order.user keyType=CLASS fieldName=id,address.zip", "order.user.id, order.user.address.zip"],
  ["keyName=order keyType=CLASS keyClass=Order fieldName=id", "(order satisfies Order).id"],
  [
    "keyName=order keyType=CLASS keyClass=Shop.Order fieldName=id,sku",
    "(order satisfies Shop.Order).id, (order satisfies Shop.Order).sku",
  ],
  ['keyName="await order" keyType=CLASS fieldName=id', "(await order).id"],
  ["keyName=order keyType=JSON fieldName=id", 'lockweave.jsonField(order, "id", "Orders.pay")'],
  [
    "keyName=order keyType=JSON keyClass=Order fieldName=id,lines[0].sku",
    'lockweave.jsonField(order satisfies Order, "id", "Orders.pay"), lockweave.jsonField(order satisfies Order, "lines[0].sku", "Orders.pay")',
  ],
];

for (const [attributes, key] of KEYS) {
  test(`${attributes} becomes the key ${key}`, (t) => {
    t.is(opened(attributes), `{ ${SITE} }, ${key}`);
  });
}

test("onFailure=skip resolves to undefined when the retries are spent", (t) => {
  const code = wovenWith("onFailure=skip")?.code ?? "";
  t.true(code.includes("if (!(await lockweave.retryCheck(lock))) return undefined; try {"), code);
});

test("onFailure=throw and no onFailure leave throwing to the runtime", (t) => {
  for (const attributes of ["onFailure=throw", ""]) {
    const code = wovenWith(attributes)?.code ?? "";
    t.true(code.includes("acquire(lock))) void (await lockweave.retryCheck(lock)); try {"), code);
  }
});

for (const failure of ["OrderBusyError", "errors.http.Conflict", "größe.Fehler", "$Busy"]) {
  test(`onFailure=${failure} passes the class to the runtime as code`, (t) => {
    const code = wovenWith(`onFailure=${failure}`)?.code ?? "";
    t.true(code.includes(`open({ ${SITE} }); while (`), code);
    t.true(code.includes(`void (await lockweave.retryCheck(lock, ${failure})); try {`), code);
  });
}

test("reentrant=true makes the body a separate function, and reentrant=false does not", (t) => {
  t.true(wovenWith("reentrant=true")?.code.includes("runReentrant("));
  t.false(wovenWith("reentrant=false")?.code.includes("runReentrant("));
});

test("a flag may be any printable text, and is escaped in the woven code", (t) => {
  const text = `/** @redisLock businessFlag='größe "x" \\ \${y} 🔒' */\nexport async function pay() {}`;
  const woven = weave("a.ts", text, { ts, module: "esm" });
  t.deepEqual(woven?.diagnostics, []);
  t.true(woven?.code.includes('businessFlag: "größe \\"x\\" \\\\ ${y} 🔒"'), woven?.code);
});

// ---- the project's defaults -----------------------------------------------------------------------------

test("the project's defaults apply to tags that do not override them", (t) => {
  const defaults = { lockTime: 20, waitTime: "250", retryTimes: 4, watchdog: false };
  t.is(
    opened("waitTime=1s", defaults),
    `{ ${SITE}, lockTime: "20s", waitTime: "1s", retryTimes: 4, watchdog: false }`,
  );
});

test("an expression keeps the project's defaults that apply if its value is undefined", (t) => {
  const defaults = { lockTime: 20, retryTimes: 4, waitTime: "250ms", lockAtLeast: "5s" };
  t.is(
    opened('lockTime="${order.lockTime}"', { lockTime: 20 }),
    `{ ${SITE}, projectDefaults: "lockTime=20s", lockTime: order.lockTime }`,
  );
  t.is(
    opened('wait="${order.wait}"', defaults),
    `{ ${SITE}, lockTime: "20s", lockAtLeast: "5s", projectDefaults: "retryTimes=4 waitTime=250ms", wait: order.wait }`,
  );
  t.is(
    opened('permits="${order.limit}"', { lockTime: 20 }),
    `{ ${SITE}, lockTime: "20s", permits: order.limit }`,
  );
});

test("the project's defaults change the woven code like attributes of the tag", (t) => {
  t.true(wovenWith("", { reentrant: true })?.code.includes("runReentrant("));
  t.false(wovenWith("reentrant=false", { reentrant: true })?.code.includes("runReentrant("));
  t.true(wovenWith("", { onFailure: "skip" })?.code.includes("return undefined;"));
  t.false(wovenWith("onFailure=throw", { onFailure: "skip" })?.code.includes("return undefined;"));
  const own = wovenWith("onFailure=Busy", { onFailure: "skip" })?.code ?? "";
  t.true(own.includes("retryCheck(lock, Busy));"));
  t.false(own.includes("skip"));
});

test("an error caused by a default of the project is reported at the tag", (t) => {
  const text = "/** @redisLock businessFlag=pay */\nexport async function pay(n = 1) { var n = 2; }";
  const { defaults } = readDefaults({ reentrant: true });
  const [problem, ...others] = weave("a.ts", text, { ts, module: "esm", defaults })?.diagnostics ?? [];
  t.is(problem?.code, "LW1310");
  t.is(text.slice(problem?.start, problem?.end), "@redisLock");
  t.deepEqual(others, []);
});

const OPTIONS_WITH_DEFAULTS = `Expected one of ${Object.keys(LOCK_ATTRIBUTES)
  .filter((name) => name !== "mode" && name !== "permits")
  .map((name) => `\`${name}\``)
  .join(", ")}.`;

const BAD_DEFAULTS: readonly (readonly [options: unknown, message: string])[] = [
  [null, "Expected the plugin's `defaults` to be an object."],
  ["lockTime=20", "Expected the plugin's `defaults` to be an object."],
  [{ lockTme: 20 }, "The plugin's `defaults` have no option `lockTme`. Did you mean `lockTime`?"],
  [
    { businessFlag: "pay" },
    `The plugin's \`defaults\` have no option \`businessFlag\`. ${OPTIONS_WITH_DEFAULTS}`,
  ],
  [{ toString: 1 }, `The plugin's \`defaults\` have no option \`toString\`. ${OPTIONS_WITH_DEFAULTS}`],
  [
    { watchdog: "maybe" },
    "In the plugin's `defaults`: Expected `watchdog` to be `true` or `false`, got `maybe`.",
  ],
  [
    { retryTimes: -1 },
    "In the plugin's `defaults`: Expected `retryTimes` to be a whole number from 0 to 1000000, got `-1`.",
  ],
  [
    { lockTime: null },
    "In the plugin's `defaults`: Expected `lockTime` to be a duration such as `500ms`, `20s`, or `2m` (a bare number is in s), at least 100 ms and at most 24 hours, got `null`.",
  ],
  [
    { onFailure: "new Busy" },
    "In the plugin's `defaults`: Expected `onFailure` to be `throw`, `skip`, or the name of an error class, got `new Busy`.",
  ],
  [{ onFailure: "Busy" }, "In the plugin's `defaults`, `onFailure` can be `throw` or `skip`."],
];

for (const [options, message] of BAD_DEFAULTS) {
  test(`the defaults ${JSON.stringify(options)} are rejected`, (t) => {
    const { defaults, problems } = readDefaults(options);
    t.deepEqual(problems, [{ code: "LW1401", start: 0, end: 0, message }]);
    t.is(defaults.size, 0);
  });
}

test("an inherited default is rejected and ignored", (t) => {
  const { defaults, problems } = readDefaults(Object.create({ fencing: true }));
  t.regex(problems[0]?.message ?? "", /In the plugin's `defaults`: The option `fencing` is inherited/);
  t.is(defaults.size, 0);
});

test("the valid defaults apply even if another one is invalid", (t) => {
  const { defaults, problems } = readDefaults({ lockTime: 20, fencing: 1, waitTime: 250 });
  t.is(problems.length, 1);
  t.deepEqual([...defaults.keys()], ["lockTime", "waitTime"]);
});
