import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { syntaxErrors } from "../read/bad-tags/row";

// The code that refuses to run if a tag has a problem.

const ESM = { ts, module: "esm" } as const;

test("a file throws when it loads if an invalid tag has no function body next to it", async (t) => {
  const tag = "/** @redisLock businessFlag=pay */";
  for (const source of [
    `${tag};\nexport async function pay() {}`,
    `export async function pay() {}\n${tag}`,
    `export async function pay() { await 1; ${tag} }`,
    `${tag}\nexport function pay(): Promise<void> { return work(); }\nexport class A { ${tag} }`,
    `export function pay(): Promise<void> { return work(); }\n/** @redisLock businessFlag=ship */\nexport const ship = 1;`,
  ]) {
    const { code, diagnostics } = weave("a.ts", source, ESM) ?? { code: "", diagnostics: [] };
    t.is(diagnostics.length, 1, source);
    const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.ESNext } });
    const js = outputText.replace(/^import .*/m, "");
    const loaded = import(`data:text/javascript,${encodeURIComponent(js)}`);
    await t.throwsAsync(
      loaded,
      { message: /^a\.ts:\d: LW13\d\d: .* The file refuses to run unlocked\.$/ },
      js,
    );
  }
});

test("each function that an invalid tag applies to refuses to run", (t) => {
  const source =
    "/** @redisLock businessFlag=pay */\nexport const pay = async () => work(), ship = async () => {};";
  const emitted = weave("a.ts", source, { ts, module: "esm" })?.code ?? "";
  t.is(emitted.split("lockweave.refuse(").length - 1, 2);
});

test("a script with an invalid tag throws its own error instead of importing the runtime", (t) => {
  const emitted =
    weave("a.ts", "/** @redisLock businessFlag=pay */\nasync function pay() { work(); }", {
      ts,
      module: "esm",
    })?.code ?? "";
  t.false(emitted.includes("lockweave/runtime"));
  t.true(emitted.includes('async function pay() { (() => { throw new Error("a.ts:1: LW1309: '));
});

test("an invalid tag inside a woven function makes only the inner function refuse to run", (t) => {
  const source =
    "/** @redisLock businessFlag=pay */\nexport const pay = async () => /** @redisLock */ async () => work();";
  const woven = weave("a.ts", source, { ts, module: "esm" });
  const emitted = woven?.code ?? "";
  t.deepEqual(syntaxErrors("a.ts", emitted), []);
  t.regex(
    emitted,
    /open\(\{ site: "pay".*return async \(\) =>.*lockweave\.refuse\(.*\), work\(\)\); \} catch/,
  );
});

test("a valid tag next to an invalid one is woven", (t) => {
  const woven = weave(
    "a.ts",
    `export class A {
  /** @redisLock businessFlag=pay */ async pay() {}
  /** @redisLock businessFlag= */ async ship() {}
}`,
    { ts, module: "esm" },
  );
  t.deepEqual(
    woven?.sites.map(({ name }) => name),
    ["A.pay"],
  );
  const [, pay = "", ship = ""] = woven?.code.split("\n") ?? [];
  t.true(pay.includes("lockweave.open({"));
  t.true(ship.includes("lockweave.refuse("));
});
