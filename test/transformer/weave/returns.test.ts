import test from "ava";
import ts from "typescript";
import * as runtime from "../../../runtime";
import { weave } from "../../../transformer/weave/weave";
import { deferred } from "../../support/deferred";
import { configureObserved, evaluate, events, held, runWoven } from "./woven-module";

test.before(configureObserved);
test.beforeEach(() => {
  events.length = 0;
});
test.after.always(() => runtime.shutdown());

type Exports = Record<string, (...values: unknown[]) => Promise<unknown>>;

const run = (source: string, world: object = {}): Exports => runWoven(source, world) as Exports;

/** Work that takes a while. Its events say whether the key was held at its beginning and at its end. */
function slowWork(key: string): { work: () => Promise<string>; make: () => object; events: string[] } {
  return {
    events,
    make: () => ({}),
    work: async () => {
      events.push(`begin ${held.has(key)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
      events.push(`end ${held.has(key)}`);
      return "done";
    },
  };
}

/** Ways to return a promise that is not settled yet. */
const BODIES: Record<string, string> = {
  "a call": "return world.work();",
  "a call in an `if`": "if (world) return world.work(); else return 1;",
  "a call in a `switch`": "switch (1) { default: return world.work(); }",
  "a call in a loop": "for (const one of [world]) { while (true) return one.work(); }",
  "a call in a `try`": "try { return world.work(); } finally { world.events.push('finally'); }",
  "a call in a `catch`": "try { throw 1; } catch { return world.work(); }",
  "a call in a labelled block": "label: { if (!world) break label; return world.work(); }",
  "a conditional": "return world ? world.work() : 1;",
  "a logical expression": "return false || world.work();",
  "a nullish expression": "return undefined ?? world.work();",
  "a comma expression": "return 1, world.work();",
  "an assignment": "let last; return last = world.work();",
  "a cast": "return world.work() as Promise<string>;",
  "a non-null assertion": "return world.work()!;",
  "a parenthesis over several lines": "return (\n // The work:\n world.work()\n);",
  "a comment": "return /* the work */ world.work() // works",
  "an async function that is called": "return (async () => { return world.work(); })();",
  "a thenable": "return { then: (resolve) => world.work().then(resolve) };",
  "an object that becomes a thenable":
    "const query = {}; query.then = (resolve) => world.work().then(resolve); return query;",
  "a function that becomes a thenable":
    "const query = () => 1; Object.defineProperty(query, 'then', { value: (resolve) => world.work().then(resolve) }); return query;",
  "an awaited object that becomes a thenable":
    "const query = await world.make(); query['then'] = (resolve) => world.work().then(resolve); return query;",
  "an instance of a class with `then`":
    "const query = new (class { then(resolve) { return world.work().then(resolve); } })(); try { return query; } finally {}",
  "a thenable that is the object itself":
    "return ({ self() { return this; }, then(resolve) { return world.work().then(resolve); } }).self();",
  "a call in parentheses, without a space": "return(world.work());",
  "a list, without a space": "return[world][0].work();",
  "an arrow function that is called, without a space": "return(()=>{return(world.work())})();",
  "a variable": "const promise = world.work(); return promise;",
  "an awaited call": "return await world.work();",
  "a variable that hides a constant": "const one = 1; { const one = world.work(); return one; }",
  "a loop's variable that hides a constant": "const one = 1; for (const one of [world.work()]) return one;",
  "a `case`'s variable that hides a constant":
    "const one = 1; switch (1) { case 1: const one = world.work(); return one; }",
  "a caught promise that hides a constant":
    "const one = 1; try { throw world.work(); } catch (one) { return one; }",
  "a constant in another scope": "{ const world = 1; } return world.work();",
  "a dynamic callee": "return world['work']?.();",
};

for (const [what, body] of Object.entries(BODIES)) {
  test.serial(`the lock is held until the returned promise settles: ${what}`, async (t) => {
    for (const [form, declared] of Object.entries({
      function: `export async function f() { ${body}\n}`,
      arrow: `export const f = async () => { ${body}\n}`,
      reentrant: `export async function f() { ${body}\n}`,
    })) {
      events.length = 0;
      const attributes = form === "reentrant" ? "reentrant=true" : "";
      const { f } = run(
        `/** @redisLock businessFlag=body ${attributes} */\n${declared}`,
        slowWork("LOCK_body"),
      );
      t.is(await f?.(), "done");
      t.deepEqual(
        events.filter((event) => event !== "finally"),
        ["acquire", "begin true", "end true", "release"],
        form,
      );
      t.false(held.has("LOCK_body"));
    }
  });
}

const VALUES: Record<string, string> = {
  "a call": "world.work()",
  "a conditional": "world ? world.work() : 1",
  "a parenthesis": "(1, world.work())",
  "a cast": "world.work() as unknown",
  "a comment and a call": "// The work:\n world.work()",
};

for (const [what, value] of Object.entries(VALUES)) {
  test.serial(`the lock is held until the value of an arrow function settles: ${what}`, async (t) => {
    for (const attributes of ["", "reentrant=true"]) {
      events.length = 0;
      const { f } = run(
        `/** @redisLock businessFlag=value ${attributes} */\nexport const f = async () => ${value}`,
        slowWork("LOCK_value"),
      );
      t.is(await f?.(), "done");
      t.deepEqual(events, ["acquire", "begin true", "end true", "release"]);
    }
  });
}

test.serial("a woven function returns its value unchanged", async (t) => {
  const source = ["undefined", "null", "0", '""', "false", "1n", "Symbol.iterator", "/x/", "-1", "typeof 1"]
    .map(
      (value, index) =>
        `/** @redisLock businessFlag=v */\nexport async function f${index}() { return ${value}; }`,
    )
    .join("\n");
  const { f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 } = run(source);
  t.deepEqual(
    [await f0?.(), await f1?.(), await f2?.(), await f3?.(), await f4?.(), await f5?.(), await f6?.()],
    [undefined, null, 0, "", false, 1n, Symbol.iterator],
  );
  t.is(String(await f7?.()), "/x/");
  t.deepEqual([await f8?.(), await f9?.()], [-1, "number"]);
});

test.serial(
  "the rejection of a promise that is returned inside `try` does not reach its `catch`",
  async (t) => {
    const error = new Error("mine");
    const { f } = run(
      `/** @redisLock businessFlag=caught */
    export async function f() { try { return world.work(); } catch { return "caught"; } }`,
      { work: () => Promise.reject(error) },
    );
    t.is(await t.throwsAsync(async () => await f?.()), error);
    t.deepEqual(events, ["acquire", "release"]);
  },
);

test.serial(
  "`finally` runs before the returned promise settles, and the lock is released after it",
  async (t) => {
    const source = `/** @redisLock businessFlag=order */
    export async function f() { try { return world.work(); } finally { world.events.push("finally"); } }`;
    const { f } = run(source, slowWork("LOCK_order"));
    t.is(await f?.(), "done");
    t.deepEqual(events, ["acquire", "begin true", "finally", "end true", "release"]);
  },
);

/** Loops and scopes that run code when a return leaves them. The pool has only one connection. */
const CLEANUPS = {
  "a loop over an async iterator": "for await (const row of world.cursor()) return world.query(row);",
  "a loop over a generator": "for (const row of world.rows()) return world.query(row);",
  "a loop over what may be an iterator":
    "const rows = world.rows(); for (const row of rows) { return world.query(row); }",
  "a loop over a list of resources":
    "for (using connection of [world.connect()]) return world.query(connection.row);",
  "a loop with a resource in its head":
    "for (using connection = world.connect(); ; ) return world.query(connection.row);",
  "a resource in a block": "{ using connection = world.connect(); return world.query(connection.row); }",
  "`try`":
    "const connection = world.connect(); try { return world.query(connection.row); } finally { connection[Symbol.dispose](); }",
  "`catch` before `finally`":
    "const connection = world.connect(); try { throw 1; } catch { return world.query(connection.row); } finally { connection[Symbol.dispose](); }",
};

/** A pool with one connection, which `query` needs for itself. */
function poolOfOne(): object {
  let isFree = true;
  let onFree = (): void => {};
  const takeConnection = (): void => {
    if (!isFree) throw new Error("taken twice");
    isFree = false;
    events.push("taken");
  };
  const returnConnection = (): void => {
    isFree = true;
    events.push("free");
    onFree();
  };
  return {
    async *cursor() {
      takeConnection();
      try {
        yield "row";
        yield "another row";
      } finally {
        returnConnection();
      }
    },
    *rows() {
      takeConnection();
      try {
        yield "row";
        yield "another row";
      } finally {
        returnConnection();
      }
    },
    connect() {
      takeConnection();
      return { row: "row", [Symbol.dispose]: returnConnection };
    },
    async query(row: string) {
      if (!isFree) {
        await new Promise<void>((resolve) => {
          onFree = resolve;
        });
      }
      events.push(`query ${row}`);
      return row;
    },
  };
}

for (const [what, body] of Object.entries(CLEANUPS)) {
  test.serial(
    `a return out of ${what} runs its cleanup before it waits for the returned promise`,
    async (t) => {
      for (const attributes of ["", "reentrant=true"]) {
        events.length = 0;
        const { f } = run(
          `/** @redisLock businessFlag=left ${attributes} */\nexport async function f() { ${body} }`,
          poolOfOne(),
        );
        t.is(await f?.(), "row");
        t.deepEqual(events, ["acquire", "taken", "free", "query row", "release"], attributes);
      }
    },
  );
}

test.serial("a parameter keeps a new value that the body assigns, even in inner functions", async (t) => {
  const { f, g, h } = run(
    `
    /** @redisLock businessFlag=assigned */
    export async function f(limit, { step = 1 } = {}) {
      limit ??= 10; step += 1;
      try { return world.later(() => [limit, step, arguments.length]); } finally { [limit] = [limit + 1]; step++; }
    }
    /** @redisLock businessFlag=assigned */
    export async function g(limit, read = () => limit) { limit += 1; try { return world.later(() => [limit, read()]); } finally { limit += 1; } }
    /** @redisLock businessFlag=assigned reentrant=true */
    export async function h(limit) { for (limit of [1, 2]); return limit; }`,
    { later: async (read: () => unknown) => read() },
  );
  t.deepEqual(await f?.(undefined, { step: 5 }), [10, 6, 2]);
  t.deepEqual(await g?.(1), [2, 2]);
  t.is(await h?.(0), 2);
});

test.serial("names that the body declares twice behave as without the weave", async (t) => {
  const { f, g, h } = run(
    `
    /** @redisLock businessFlag=twice */
    export async function f() { function a() { return 1; } function a() { return 2; } return [a(), arguments.length]; }
    /** @redisLock businessFlag=twice */
    export async function g() { var a; function a() { return 2; } return a(); }
    /** @redisLock businessFlag=twice */
    export const h = async () => { { var a = 1; } world.events.push(a); function a() {} };`,
    { events },
  );
  t.deepEqual(await f?.(1), [2, 1]);
  t.is(await g?.(), 2);
  t.is(await h?.(), undefined);
  t.deepEqual(events.slice(-3), ["acquire", 1, "release"]);
});

test.serial("inner functions keep their own returns", async (t) => {
  const { f } = run(`/** @redisLock businessFlag=own */
    export async function f() {
      const promise = Promise.resolve(1);
      const inner = () => { return promise; };
      function plain() { return promise; }
      class A { get one() { return promise; } two() { return promise; } }
      return [inner() === promise, plain() === promise, new A().one === promise, new A().two() === promise];
    }`);
  t.deepEqual(await f?.(), [true, true, true, true]);
});

for (const attributes of ["", "reentrant=true"]) {
  const kind = attributes === "" ? "plain" : "reentrant";

  test.serial(`the body's error is thrown unchanged, and the lock is released (${kind})`, async (t) => {
    const error = new Error("mine");
    for (const thrown of [error, undefined, null, 0, "text", Promise.reject(error)]) {
      events.length = 0;
      if (thrown instanceof Promise) thrown.catch(() => {});
      const { f } = run(
        `/** @redisLock businessFlag=thrown ${attributes} */\nexport async function f() { await 1; throw world.thrown; }`,
        { thrown },
      );
      let caught: unknown = "nothing";
      await f?.().catch((reason: unknown) => {
        caught = reason;
      });
      t.is(caught, thrown);
      t.deepEqual(events, ["acquire", "release"]);
    }
  });

  test.serial(
    `a returned promise rejects with its error unchanged, and the lock is released (${kind})`,
    async (t) => {
      const error = new Error("mine");
      const { f } = run(
        `/** @redisLock businessFlag=rejected ${attributes} */\nexport const f = async () => world.work()`,
        { work: () => Promise.reject(error) },
      );
      t.is(await t.throwsAsync(async () => await f?.()), error);
      t.deepEqual(events, ["acquire", "release"]);
    },
  );

  test.serial(
    `\`arguments\`, \`this\`, and \`super\` in the body are those of the function (${kind})`,
    async (t) => {
      const { f } = run(`
      class Base { tenant = "t1"; async pay(...all) { return [this.tenant, ...all]; } }
      class Orders extends Base {
        /** @redisLock businessFlag=context keyName=this.tenant ${attributes} */
        async pay(orderNo) { return [arguments.length, ...(await super.pay(...arguments)), this instanceof Orders]; }
        /** @redisLock businessFlag=context keyName=this.tenant ${attributes} */
        arrow = async () => this.tenant;
        /** @redisLock businessFlag=context keyName=this.#secret ${attributes} */
        async secret() { return this.#secret; }
        #secret = "s";
      }
      export async function f() {
        const orders = new Orders();
        return [await orders.pay("1", "2"), await orders.arrow(), await orders.secret()];
      }`);
      t.deepEqual(await f?.(), [[2, "t1", "1", "2", true], "t1", "s"]);
    },
  );

  test.serial(`the key uses the arguments, for every form of parameters (${kind})`, async (t) => {
    const { f } = run(
      `/** @redisLock businessFlag=key keyName=tenant,id,first,count,"rest[0]","arguments.length" ${attributes} */
      export async function f({ tenant, user: { id }, lines: [first = "none"] }, count = 7, ...rest) {
        return world.keys();
      }`,
      { keys: () => [...held] },
    );
    const keys = await f?.({ tenant: "t1", user: { id: 5 }, lines: [] }, undefined, "r");
    t.deepEqual(keys, [runtime.lockKey("key", "t1", 5, "none", 7, "r", 3)]);
  });
}

test.serial("a parameter with the name `undefined` keeps its argument", async (t) => {
  const { f, g } = run(
    `/** @redisLock businessFlag=hidden */ export async function f(undefined) { return undefined; }
    /** @redisLock businessFlag=hidden onFailure=skip retryTimes=0 */ export const g = async (undefined) => undefined;`,
  );
  const given = {
    // oxlint-disable-next-line unicorn/no-thenable -- It shows when it is awaited.
    then: async (done: (value: unknown) => void) => {
      const skipped = await g?.("skipped");
      done([skipped, ...held]);
    },
  };
  t.deepEqual(await f?.(given), [undefined, "LOCK_hidden"]);
  t.is(await g?.("text"), "text");
});

for (const reentrant of [false, true]) {
  test.serial(
    `a key with a variable of the file does not use a woven variable, reentrant=${reentrant}`,
    async (t) => {
      const { f } = run(
        `const limit_1 = "outer";
      /** @redisLock businessFlag=outer keyName="limit_1" reentrant=${reentrant} */
      export async function f(limit) { limit += 1; return [() => limit, world.keys].map((each) => String(each())); }`,
        { keys: () => [...held] },
      );
      t.deepEqual(await f?.(1), ["2", "LOCK_outer_outer"]);
    },
  );
}

test.serial(
  "a key uses the parameter `lock`, even if the body declares it and other woven names",
  async (t) => {
    const { f } = run(
      `/** @redisLock businessFlag=shadow keyName=lock */
    export async function f(lock) { var lock = lock + 1; { const lock_1 = 0, lockweave = 0; } return [lock, ...world.keys()]; }`,
      { keys: () => [...held] },
    );
    t.deepEqual(await f?.(1), [2, "LOCK_shadow_1"]);
  },
);

const OUTER = 'const lock = "outer lock", lockweave = "outer weave", lock_1 = "outer key";';

test.serial(
  "woven names do not hide outer names that the body uses only as shorthand properties",
  async (t) => {
    const { f } = run(
      `${OUTER}
    /** @redisLock businessFlag=shorthand */
    export async function f() { return [{ lock }, { lockweave }, ...world.keys()]; }`,
      { keys: () => [...held] },
    );
    t.deepEqual(await f?.(), [{ lock: "outer lock" }, { lockweave: "outer weave" }, "LOCK_shorthand"]);
  },
);

test.serial("woven names do not hide outer names that only the tag uses", async (t) => {
  const { f } = run(
    `${OUTER}
    /** @redisLock businessFlag=onlyInTag keyName="lock_1 + lock" */
    export async function f() { return world.keys(); }`,
    { keys: () => [...held] },
  );
  t.deepEqual(await f?.(), ["LOCK_onlyInTag_outer keyouter lock"]);
});

test.serial("two calls for one key run one after the other", async (t) => {
  const [first, begun] = [deferred(), deferred()];
  const { f } = run(
    `/** @redisLock businessFlag=turns keyName=id */
    export async function f(id, name) {
      world.events.push(name); world.begun.resolve(); await world.first; world.events.push(name); return name;
    }`,
    { events, begun, first: first.promise },
  );
  const both = Promise.all([f?.(1, "a"), f?.(1, "b")]);
  await begun.promise;
  t.deepEqual(events, ["acquire", "a"]);
  first.resolve();
  t.deepEqual(await both, ["a", "b"]);
  // A busy machine may release the lock between the calls instead of handing it off.
  t.deepEqual(
    events.filter((event) => event === "a" || event === "b"),
    ["a", "a", "b", "b"],
  );
  t.is(events.at(-1), "release");
});

test.serial("onFailure determines how a call ends if it does not get the lock", async (t) => {
  class Busy extends Error {}
  const SKIPPED = Symbol("skipped");
  const [first, begun] = [deferred(), deferred()];
  const body = "async (wait) => { world.begun.resolve(); if (wait) await world.first; return 'done'; }";
  const { throwing, skipping, constant, object, own } = run(
    `const Busy = world.Busy;
    const SKIPPED = world.SKIPPED;
    /** @redisLock businessFlag=busy retryTimes=0 onFailure=skip skipValue="SKIPPED" */\nexport const constant = ${body};
    /** @redisLock businessFlag=busy retryTimes=0 onFailure=skip skipValue="{ busy: await wait }" */\nexport const object = ${body};
    /** @redisLock businessFlag=busy retryTimes=0 */\nexport const throwing = ${body};
    /** @redisLock businessFlag=busy retryTimes=0 onFailure=skip */\nexport const skipping = ${body};
    /** @redisLock businessFlag=busy retryTimes=0 onFailure=Busy */\nexport const own = ${body};`,
    { Busy, SKIPPED, begun, first: first.promise },
  );
  const holder = throwing?.(true);
  await begun.promise;
  await t.throwsAsync(async () => await throwing?.(false), { instanceOf: runtime.LockWaitTimeoutError });
  t.is(await skipping?.(false), undefined);
  t.is(await constant?.(false), SKIPPED);
  t.deepEqual(await object?.(false), { busy: false });
  await t.throwsAsync(async () => await own?.(false), { instanceOf: Busy });
  first.resolve();
  t.is(await holder, "done");
});

test.serial("currentLock() returns the held lock, even in helpers and inner tagged functions", async (t) => {
  const { f, g } = run(`import { currentLock } from "lockweave";
    /** @redisLock businessFlag=outer */
    export async function f() {
      const key = () => currentLock().key;
      /** @redisLock businessFlag=inner */
      const inner = async () => currentLock().key;
      return [key(), await inner(), key()];
    }
    /** @redisLock businessFlag=arrow */
    export const g = async () => currentLock();`);
  t.deepEqual(await f?.(), ["LOCK_outer", "LOCK_inner", "LOCK_outer"]);
  t.like(await g?.(), { key: "LOCK_arrow" });
});

test.serial("a reentrant function enters its own lock again, and releases it once", async (t) => {
  const { f } = run(
    `/** @redisLock businessFlag=tree keyName=id reentrant=true */
    export async function f(id, depth) { world.events.push(depth); return depth === 0 ? "leaf" : f(id, depth - 1); }`,
    { events },
  );
  t.is(await f?.("a", 2), "leaf");
  t.deepEqual(events, ["acquire", 2, 1, 0, "release"]);
});

test.serial("a function with an invalid tag rejects without running its body", async (t) => {
  let ran = false;
  const world = (): void => {
    ran = true;
  };
  const text = `import { world } from "world";
    /** @redisLock */ export async function f() { world(); }
    /** @redisLock */ export const g = async () => world();
    /** @redisLock businessFlag=x */ export function h() { return world(); }`;
  const { code = "" } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  const exports = evaluate(code, world, ts.ScriptTarget.ES2022) as Exports;
  for (const f of [exports["f"], exports["g"], exports["h"]]) {
    await t.throwsAsync(async () => await f?.(), { instanceOf: runtime.LockNotWovenError });
  }
  t.false(ran);
});
