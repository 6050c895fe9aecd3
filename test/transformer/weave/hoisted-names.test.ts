import { runInThisContext } from "node:vm";
import test from "ava";
import { transformSync } from "esbuild";
import ts from "typescript";
import * as runtime from "../../support/whole-runtime";
import { weave } from "../../../transformer/weave/weave";
import { configureObserved, held, runWoven } from "./woven-module";

test.before(configureObserved);
test.after.always(() => runtime.shutdown());

type Pay = (id: string) => Promise<unknown>;

/** Weaves a function in sloppy mode. The file declares other things with the names that the body declares. */
function pay(attributes: string, body: string, fn = "async function pay"): Pay {
  const text = `const region = (id) => "outer " + id; class Busy extends Error {}
/** @redisLock ${attributes} */
${fn}(id) { ${body} }
module.exports = pay;`;
  const { code = "", diagnostics } = weave("pay.cjs", text, { ts, module: "script" }) ?? {};
  if (code === "" || diagnostics?.length !== 0) throw new Error(JSON.stringify(diagnostics));
  const module: { exports?: unknown } = {};
  const run = runInThisContext(`(function (module, require, held) { ${code}\n})`) as (
    ...given: object[]
  ) => void;
  run(module, () => runtime, held);
  return module.exports as Pay;
}

const BODIES = [
  'function region() { return "inner"; }',
  'if (id) { function region() { return "inner"; } }',
  'switch (id) { default: function region() { return "inner"; } }',
  'var region = () => "inner";',
  'for (var region of [() => "inner"]);',
  'var { region = () => "inner" } = {};',
  'let region = () => "inner";',
  'class region {} region = () => "inner";',
];

for (const body of BODIES) {
  test.serial(
    `a key uses the names outside of the function, whatever the body declares: ${body}`,
    async (t) => {
      const keys = pay('businessFlag=pay keyName="region(id)"', `${body} return [region(), ...held];`);
      const whole = pay('key="pay:${region(id)}"', `${body} return [region(), ...held];`);
      const only = pay(
        `key="pay:\${id}" when="region(id) === 'outer B1'"`,
        `${body} return [region(), ...held];`,
      );
      t.deepEqual(await keys("A1"), ["inner", "LOCK_pay_outer A1"]);
      t.deepEqual(await whole("A1"), ["inner", "pay:outer A1"]);
      t.deepEqual(await only("A1"), ["inner"]);
      t.deepEqual(await only("B1"), ["inner", "pay:B1"]);
    },
  );
}

test.serial(
  "onFailure uses the error class outside of the function, whatever the body declares",
  async (t) => {
    const body = "function Busy() {} return new Promise((done) => setTimeout(done, 5, typeof Busy));";
    const busy = pay("businessFlag=busy onFailure=Busy retryTimes=0", body);
    const [first, second] = await Promise.allSettled([busy("A1"), busy("A1")]);
    t.like(first, { value: "function" });
    t.is((second as PromiseRejectedResult).reason.constructor.name, "Busy");
  },
);

test.serial("the key uses a parameter that the body declares again", async (t) => {
  const body = "var id; function id2() { return id; } return [id2(), ...held];";
  t.deepEqual(await pay('businessFlag=pay keyName="`${id}`"', body)("A1"), ["A1", "LOCK_pay_A1"]);
});

test.serial(
  "a function in a block does not replace a parameter, even if the body becomes a function",
  async (t) => {
    const body = "const before = typeof id; { function id() {} } return [before, typeof id];";
    for (const attributes of ["", "reentrant=true"]) {
      t.deepEqual(await pay(`businessFlag=pay keyName=id ${attributes}`, body)("A1"), ["string", "string"]);
    }
  },
);

test.serial("an escaped name in the key does not refer to the woven variable `lock`", async (t) => {
  const text = String.raw`businessFlag=pay keyName="typeof \u006cock + typeof \u{6c}ock"`;
  t.deepEqual(await pay(text, "return [...held];")("A1"), ["LOCK_pay_undefinedundefined"]);
});

test.serial(
  "a key uses the outer name in an ES module that esbuild compiles with a strict tsconfig.json",
  async (t) => {
    const text = `const region = (id) => "outer " + id; /** @redisLock businessFlag=pay keyName="region(id)" */
export async function pay(id) { function region() { return "inner"; } return [region(), ...world]; }`;
    const tsconfigRaw = { compilerOptions: { strict: true } };
    const { pay: woven } = runWoven(
      text,
      held,
      undefined,
      (code) => transformSync(code, { loader: "ts", tsconfigRaw }).code,
    ) as { pay: Pay };
    t.deepEqual(await woven("A1"), ["inner", "LOCK_pay_outer A1"]);
  },
);
