import test from "ava";
import { transformSync } from "esbuild";
import ts from "typescript";
import { isSameEssence, type Essence } from "../../../transformer/verify/locks/canonical";
import { locksIn } from "../../../transformer/verify/locks/locks";
import { EDITS, WOVEN } from "./edits";

/** Returns the first complete lock in the code. */
function lockIn(code: string): ReturnType<typeof locksIn>["locks"][number] | undefined {
  return locksIn(ts, "a.js", code).locks[0];
}

test("a woven lock is read with its site, its options, and its key", (t) => {
  const lock = lockIn(WOVEN);
  t.is(lock?.site, "OrderService.pay");
  t.deepEqual(
    [...(lock?.options ?? [])],
    [
      ["businessFlag", "payOrder"],
      ["fencing", true],
      ["site", "OrderService.pay"],
    ],
  );
  t.deepEqual(
    lock?.key.map(({ reads }) => reads),
    ["parameter 0", "parameter 1 .id"],
  );
  t.is(lock?.unawaited, 0);
});

for (const [what, [from, to]] of Object.entries(EDITS)) {
  test(`a function does not count as locked if ${what}`, (t) => {
    t.true(WOVEN.includes(from));
    const edited = WOVEN.replace(from, to);
    t.notThrows(() => transformSync(edited), edited);
    t.is(lockIn(edited), undefined);
  });
}

test("the value of a skip is compared, however a minifier writes it", (t) => {
  const skipping = (value: string): string =>
    WOVEN.replace(
      "void (await lockweave.retryCheck(lock));",
      `if (!(await lockweave.retryCheck(lock))) return ${value};`,
    );
  const lock = lockIn(skipping("({ busy: false, orderNo })"));
  t.deepEqual(
    lock?.key.map(({ reads }) => reads),
    ["parameter 0", "parameter 1 .id", "parameter 0"],
  );
  t.is(lockIn(skipping("{ busy: !1, orderNo: orderNo }"))?.loose, lock?.loose);
  t.not(lockIn(skipping("undefined"))?.steps, lock?.steps);
  const without = lockIn(skipping("({ busy: false, orderNo: await this.charge(orderNo) })"));
  t.notDeepEqual(without?.key, lock?.key);
});

test("a lock counts if a minifier declares the body's variables with it, without values", (t) => {
  t.truthy(lockIn(WOVEN.replace("orderNo, tenant.id);", "orderNo, tenant.id), paid, sent;")));
});

test("a lock counts if a minifier declares the variables of an inlined function next to its steps, without values", (t) => {
  t.truthy(lockIn(WOVEN.replace("release(lock); }", "release(lock); } var r, s;")));
  t.truthy(lockIn(WOVEN.replace("while (", "var r; while (")));
});

for (const declaration of [
  "var lock = other;",
  "var orderNo = tenant;",
  "var lockweave = { acquire: () => true };",
  "function lockweave() {}",
  "using work = begin();",
  "await using work = begin();",
]) {
  test(`a lock does not count with \`${declaration}\` next to its steps`, (t) => {
    for (const step of ["while (", "try {"])
      t.is(lockIn(WOVEN.replace(step, () => `${declaration} ${step}`)), undefined, step);
    t.is(lockIn(WOVEN.replace("release(lock); }", () => `release(lock); } ${declaration}`)), undefined);
  });
}

for (const change of [
  "var lock = other;",
  "lock = other;",
  "lock ||= other;",
  "({ lock } = other);",
  "({ first: lock } = other);",
  "({ lock = first } = other);",
  "[{ first: [lock = first] }, ...rest] = other;",
  "({ ...lock } = other);",
  "for (lock of others) work(lock);",
  "function inner() { lock = other; }",
]) {
  test(`a lock does not count if its body changes the variable by \`${change}\``, (t) => {
    const held = WOVEN.replace("const lock", "var lock");
    const reentrant = held
      .replace("fencing: true", "reentrant: true")
      .replace("lockweave.assertHeld(lock);", "return await lockweave.runReentrant(lock, async () => {")
      .replace("this.charge(orderNo); }", "this.charge(orderNo); }); }");
    for (const code of [held, reentrant]) {
      t.truthy(lockIn(code), code);
      t.is(lockIn(code.replace("try {", `try { ${change}`)), undefined);
    }
    t.is(lockIn(held.replace("if (orderNo)", `${change} if (orderNo)`)), undefined);
    const extra = reentrant.replace("}); }", "}, await this.charge(orderNo)); }");
    t.is(lockIn(extra), undefined, extra);
    const shadowed = held.replace("if (orderNo)", `inner((lock) => { ${change} }); if (orderNo)`);
    t.truthy(lockIn(shadowed), shadowed);
  });
}

test("a lock counts if its body destructures a member that has the name of its variable, or uses it in a default", (t) => {
  for (const assignment of [
    "({ lock: first } = other);",
    "[first = lock] = other;",
    "for ({ lock: first } of others);",
  ]) {
    t.truthy(lockIn(WOVEN.replace("if (orderNo)", `${assignment} if (orderNo)`)), assignment);
  }
});

test("a site that opens a lock without the other steps is listed as broken", (t) => {
  t.deepEqual(locksIn(ts, "a.js", WOVEN).broken, []);
  const broken = WOVEN.replace("await lockweave.release(lock);", "");
  t.deepEqual(locksIn(ts, "a.js", broken).broken, [{ site: "OrderService.pay", isLowered: false }]);
});

test("a function counts as skipped only if it does nothing but return after retryCheck() of its own lock", (t) => {
  const retry = "void (await lockweave.retryCheck(lock));";
  t.true(WOVEN.includes(retry));
  for (const skip of [
    "if (!(await lockweave.retryCheck(lock))) return;",
    "{ if (!await lockweave.retryCheck(lock)) { return void 0; } }",
    "if (!(await retry(lock))) return;",
  ]) {
    const lock = lockIn(WOVEN.replace(retry, skip));
    t.true(lock?.loose.includes('"skip",false'), skip);
  }
  for (const otherwise of [
    "if (await lockweave.retryCheck(lock)) return;",
    "if (!lockweave.retryCheck(lock)) return;",
    "if (!(await lockweave.retryCheck(other))) return;",
    "if (!(await lockweave.acquire(lock))) return;",
    "if (!(await lockweave.retryCheck(lock))) return; else work();",
    "if (!(await lockweave.retryCheck(lock))) { work(); return; }",
  ]) {
    t.is(lockIn(WOVEN.replace(retry, otherwise)), undefined, otherwise);
  }
});

test("a lock counts if a minifier joins assertHeld() with the first statement of the body", (t) => {
  const gate = "lockweave.assertHeld(lock); if (orderNo) return await this.charge(orderNo);";
  t.true(WOVEN.includes(gate));
  for (const code of [
    "return lockweave.assertHeld(lock), await this.charge(orderNo);",
    "if ((lockweave.assertHeld(lock), orderNo)) return;",
    "return lockweave.assertHeld(lock), orderNo ? 1 : 2;",
    "for (lockweave.assertHeld(lock); ; ) await this.charge(orderNo);",
    "(lockweave.assertHeld(lock), orderNo) ? a() : b();",
    "throw lockweave.assertHeld(lock), orderNo;",
  ]) {
    t.truthy(lockIn(WOVEN.replace(gate, code)), code);
  }
});

test("a lock counts if the code before assertHeld() runs nothing", (t) => {
  const gate = "lockweave.assertHeld(lock);";
  t.true(WOVEN.includes(gate));
  for (const code of [
    "function inner() { return work(); }", // terser, swc
    "let inner2 = function() { return work(); }; var inner = inner2;", // esbuild
    "let work, other;",
    "const one = 1, arrow = () => work(), none = void 0;",
  ]) {
    t.truthy(lockIn(WOVEN.replace(gate, `${code} ${gate}`)), code);
  }
});

test("a lock counts if a compiler names functions before assertHeld(), but does nothing else there", (t) => {
  const gate = "lockweave.assertHeld(lock);";
  const code = WOVEN.replace(gate, `function inner() {} keep(inner, "inner"); ${gate}`);
  const keeps = 'var keep = (target, value) => define(target, "name", { value, configurable: true });';
  t.truthy(lockIn(`${keeps}\n${code}`));
  t.truthy(lockIn(`(() => { ${keeps.replace("true", "!0")}\n${code.replace(/import.*|export/g, "")} })();`));
  t.truthy(lockIn(`${keeps}\n${code.replace('"inner");', '"inner"), keep(inner, "b"),')}`));
  for (const [what, otherwise] of Object.entries({
    "something else comes first": `${keeps}\n${code.replace('"inner");', '"inner"), work(),')}`,
    "the function that names is unknown": code,
    "it does more": `${keeps.replace("=> define", "=> work() + define")}\n${code}`,
    "it defines something else": `${keeps.replace('"name"', '"then"')}\n${code}`,
    "its name means another function inside": `${keeps}\n{ const keep = work; ${code.replace(/import.*|export/g, "")} }`,
    "its argument runs code": `${keeps}\n${code.replace('keep(inner, "inner")', 'keep(work(), "inner")')}`,
  })) {
    t.is(lockIn(otherwise), undefined, what);
  }
});

test("a lock counts if a compiler sets parameters to defaults before it, but does nothing else there", (t) => {
  const before = (code: string): unknown => lockIn(WOVEN.replace("const lock =", `${code} const lock =`));
  t.truthy(before("var { id } = _a; if (limit === void 0) { limit = id.length; }"));
  for (const code of [
    "if (limit === void 0) { limit = await work(); }",
    "if (limit === void 0) { other = 1; }",
    "if (limit === 1) { limit = 2; }",
    "if (limit === void 0) { limit = 1; work(); }",
    "if (limit === void 0) { limit = 1; } else work();",
    "if (limit === void 0) work();",
  ]) {
    t.is(before(code), undefined, code);
  }
});

test("a reentrant lock counts if its parameters are copied before the body, but nothing else runs there", (t) => {
  const gate = "lockweave.assertHeld(lock); if (orderNo) return await this.charge(orderNo);";
  const body = "return await lockweave.runReentrant(lock, async (orderNo = orderNo_1) => { orderNo++; });";
  t.true(WOVEN.includes(gate));
  const reentrant = WOVEN.replace("fencing: true", "reentrant: true");
  t.truthy(lockIn(reentrant.replace(gate, `const orderNo_1 = orderNo; ${body}`)));
  t.truthy(lockIn(reentrant.replace(gate, `void arguments; ${body}`)));
  t.is(lockIn(reentrant.replace(gate, `const orderNo_1 = work(); ${body}`)), undefined);
  t.is(lockIn(reentrant.replace(gate, `void work(); ${body}`)), undefined);
  t.is(lockIn(reentrant.replace(gate, `work(); ${body}`)), undefined);
});

test("a lock counts if the compiler's `try` for a `using` is around the whole body", (t) => {
  const body = "lockweave.assertHeld(lock); if (orderNo) return await this.charge(orderNo);";
  t.true(WOVEN.includes(body));
  const caught = "catch (e_1) { env_1.error = e_1; } finally { __disposeResources(env_1); }";
  for (const env of ["const env_1 = { stack: [], error: void 0, hasError: false };", "var _stack = [];"]) {
    t.truthy(lockIn(WOVEN.replace(body, `${env} try { ${body} } ${caught}`)), env);
  }
});

test("a return that may not await counts as immediate, whatever its value is", (t) => {
  for (const [code, count] of Object.entries({
    "return { ...orderNo };": 1,
    "return spread(orderNo);": 1,
    "return orderNo ? await this.charge() : 'none';": 1,
    "if (orderNo) return await this.charge(); return;": 0,
    "const nested = () => { return 1; }; return await nested();": 0,
  })) {
    t.is(
      lockIn(WOVEN.replace("if (orderNo) return await this.charge(orderNo);", code))?.immediate,
      count,
      code,
    );
  }
});

test("a return of an unawaited promise is counted, however a minifier writes it", (t) => {
  const returns = (code: string): number | undefined =>
    lockIn(WOVEN.replace("if (orderNo) return await this.charge(orderNo);", code))?.unawaited;
  for (const code of [
    "return this.charge();",
    "return orderNo ? await this.charge() : this.charge();",
    "return await this.charge(), this.charge();",
    "return (await this.charge()) || (this.charge());",
    "if (orderNo) { for (;;) return promise; }",
    "return new Promise(() => {});",
  ]) {
    t.is(returns(code), 1, code);
  }
  for (const code of [
    "return;",
    "return orderNo ? await this.charge() : { paid: 1 };",
    "return await this.charge() + 1;",
    "return void 0;",
    "return undefined;",
    "const nested = () => { return this.charge(); }; return await nested();",
  ]) {
    t.is(returns(code), 0, code);
  }
});

test("locks are equal if only their spelling differs, but not if their behavior differs", (t) => {
  const lock = lockIn(WOVEN);
  const rewritten = WOVEN.replaceAll('"', "'")
    .replace(
      "while (!(await lockweave.acquire(lock))) ",
      "while (!await lockweave /* ... */ .acquire(lock))\n",
    )
    .replace("throw lockweave.fail(lock, error)", "throw (lockweave.fail(lock, (error)))")
    .replace("site:", "'site':")
    .replace("fencing: true", "fencing: !0");
  t.is(lockIn(rewritten)?.exact, lock?.exact);
  for (const [from, to] of [
    ["orderNo, tenant.id)", "orderNo, tenant.ID)"],
    ["orderNo, tenant.id)", "tenant.id, orderNo)"],
    ["fencing: true", "fencing: false"],
    ["retryCheck(lock)", "retryCheck(lock, Busy)"],
    ["class OrderService", "class Orders"],
    ["async pay(", "async payTwice("],
  ] as const) {
    t.not(lockIn(WOVEN.replace(from, to))?.exact, lock?.exact, to);
  }
});

test("a lock counts if its key or its condition awaits, or its error is a member of a module", (t) => {
  const retry = "void (await lockweave.retryCheck(lock));";
  for (const [from, to] of [
    ["tenant.id)", "await named(tenant))"],
    [retry, "if (!(await lockweave.retryCheck(lock))) return (await live());"],
    ["lockweave.open(", "lockweave.when(await live()) ? lockweave.open("],
    ["retryCheck(lock)", "retryCheck(lock, errors().Busy)"],
    ["retryCheck(lock)", `retryCheck(lock, busy["default"])`],
  ] as const) {
    const edited = WOVEN.replace(from, to);
    const code = to.includes("when(")
      ? edited.replace("tenant.id);", "tenant.id) : lockweave.unlocked();")
      : edited;
    t.truthy(lockIn(code), code);
  }
});

test("a lock with a whole key is compared by its template, even in the form for old targets", (t) => {
  const keyed = (key: string): string =>
    WOVEN.replace(`businessFlag: "payOrder"`, `key: ${key}`).replace(", orderNo, tenant.id);", ");");
  const template = lockIn(keyed("lockweave.wholeKey`mutex:${orderNo}/${tenant.id}`"));
  t.is(template?.options.get("key"), "mutex:${}/${}");
  t.deepEqual(
    template?.key.map(({ reads }) => reads),
    ["parameter 0", "parameter 1 .id"],
  );
  const old =
    '(0, lockweave.wholeKey)(_a || (_a = __template(["mutex:", "/", ""], ["mutex:", "/", ""])), orderNo, tenant.id)';
  for (const same of [old, "b`mutex:${orderNo}/${tenant.id}`"]) {
    const lock = lockIn(keyed(same));
    t.is(lock?.loose, template?.loose);
    t.deepEqual(lock?.key, template?.key);
  }
  t.not(lockIn(keyed("lockweave.wholeKey`lock:${orderNo}/${tenant.id}`"))?.loose, template?.loose);
  t.not(lockIn(keyed("lockweave.wholeKey`mutex:${tenant}/${orderNo}`"))?.exact, template?.exact);
  t.deepEqual(lockIn(keyed("lockweave.wholeKey`mutex`"))?.key, []);
  for (const other of [
    "orderNo",
    "other.tag`mutex:${orderNo}/${tenant.id}`",
    "lockweave.wholeKey(orderNo)",
  ]) {
    t.is(lockIn(keyed(other)), undefined);
  }
});

test("a lock with a condition is compared by the condition, and does not count in any other form", (t) => {
  const conditional = (
    condition: string,
    [open = "lockweave.when", unlocked = "lockweave.unlocked()"]: string[] = [],
  ): string =>
    WOVEN.replace("lockweave.open(", `${open}(${condition}) ? lockweave.open(`).replace(
      "tenant.id);",
      `tenant.id) : ${unlocked};`,
    );
  const reads = (code: string): (string | undefined)[] | undefined =>
    lockIn(code)?.key.map((part) => part.reads);
  t.deepEqual(reads(conditional("tenant.isLarge")), [
    "parameter 0",
    "parameter 1 .id",
    "parameter 1 .isLarge",
  ]);
  t.not(lockIn(conditional("tenant.isLarge"))?.loose, lockIn(WOVEN)?.loose);
  t.not(lockIn(conditional("tenant.isLarge"))?.exact, lockIn(conditional("tenant.isNew"))?.exact);
  t.is(lockIn(conditional("orderNo", ["when", "unlocked()"]))?.site, "OrderService.pay"); // A bundler's names.
  t.is(lockIn(conditional("orderNo", ["lockweave.always"])), undefined);
  t.is(lockIn(conditional("orderNo", ["lockweave.when", "undefined"])), undefined);
  t.is(
    lockIn(WOVEN.replace("lockweave.open(", "lockweave.when(0) ? lockweave.unlocked() : lockweave.open(")),
    undefined,
  );
});

test("keys are equal if only a minifier's spelling differs, but not if they read or contain something else", (t) => {
  const keyOf = (key: string): Essence | undefined =>
    lockIn(WOVEN.replace("orderNo, tenant.id)", `${key})`))?.key[0];
  const isSame = (expected: string, found: string): boolean => {
    const essence = keyOf(expected);
    return essence !== undefined && isSameEssence(essence, keyOf(found));
  };
  for (const [expected, found] of [
    ["orderNo", "(orderNo)"],
    ["'a' + orderNo + 'b'", "`a${orderNo}b`"],
    ["`${orderNo}-${'none'}-${1}`", "`${orderNo}-none-1`"],
    ["tenant?.id", "null === tenant || void 0 === tenant ? void 0 : tenant.id"],
    ["lockweave.jsonField(tenant, 'id')", "j(tenant, `id`)"],
    ["`${Status.Open}-${orderNo}`", "`1-${orderNo}`"],
    ["`a-${Status.Open}`", "'a-1'"],
    ["`${NAME}-x`", "`${n}-x`"],
    ["NAME", "'order'"],
    ["this.#id", "get(this, id, 'f')"],
    ["tenant['id']", "tenant.id"],
    ["tenant.customerNo", "tenant['custo' + 'merNo']"],
    ["orderNo === undefined ? 'none' : orderNo", "void 0 === orderNo ? 'none' : orderNo"],
  ] as const) {
    t.true(isSame(expected, found), `${expected} is ${found}`);
  }
  for (const [expected, found] of [
    ["orderNo", "tenant"],
    ["orderNo", "'order'"],
    ["orderNo", "NAME"],
    ["tenant.id", "tenant"],
    ["tenant.id.no", "tenant.no.id"],
    ["tenant.id + orderNo", "orderNo + tenant.id"],
    ["this.id", "tenant.id"],
    ["'a' + orderNo", "'b' + orderNo"],
    ["`${NAME}-x`", "`${n}-y`"],
    ["`x-${NAME}`", "`y-${n}`"],
    ["`x-${NAME}-y`", "'x-y'"],
    ["'order'", "NAME"],
    ["lockweave.jsonField(tenant, 'id')", "j(tenant, 'no')"],
    ["orderNo === void 0 ? 'eu' : orderNo", "orderNo === void 0 ? 'us' : orderNo"],
    ["orderNo", "orderNo === void 0 ? tenant : orderNo"],
    ["Status.Open", "Status.Open === void 0 ? tenant : Status.Open"],
  ] as const) {
    t.false(isSame(expected, found), `${expected} is not ${found}`);
  }
});

test("a key is compared by the parameters that it reads, even if they are destructured", (t) => {
  const readsOf = (key: string, parameters = "orderNo, tenant", before = ""): string | undefined =>
    lockIn(
      WOVEN.replace("orderNo, tenant)", `${parameters})`)
        .replace("orderNo, tenant.id)", `${key})`)
        .replace("const lock", `${before}const lock`),
    )?.key[0]?.reads;
  t.is(readsOf("no", "{ order: { no }, ...rest }, [, tenant]"), "parameter 0.order.no");
  t.is(readsOf("rest.no", "{ order, ...rest }, [, tenant]"), "parameter 0....rest .no");
  t.is(readsOf("tenant.id", "{ order, ...rest }, [, tenant]"), "parameter 1.1 .id");
  t.is(readsOf("id", '{ "order": id }'), "parameter 0.order");
  // The form for old targets.
  t.is(readsOf("no", "_a", "var no = _a; "), "parameter 0");
  t.is(readsOf("no", "_a", "var { order: no } = _a; "), "parameter 0.order");
  const optional = "(_a = tenant) === null || _a === void 0 ? void 0 : _a.id";
  t.is(readsOf(optional, "orderNo, tenant", "var _a; "), "parameter 1 .id");
});
