import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** The function that the body becomes, up to its own brace. */
function headOf(source: string): string {
  const code = weave("a.ts", source, { ts, module: "esm" })?.code ?? "";
  return /runReentrant\(\w+, (.*?) =>/.exec(code)?.[1] ?? code;
}

const TAG = "/** @redisLock businessFlag=pay reentrant=true */";

const THROWING = [
  "throw 1;",
  "work(); throw 1;",
  "{ throw 1; }",
  "if (a) throw 1; else throw 2;",
  "if (a) { throw 1; } else { work(); throw 2; }",
  "if (a) throw 1; else if (b) throw 2; else throw 3;",
  "try { throw 1; } finally { work(); }",
  "try { throw 1; } catch { throw 2; }",
  "try { work(); } finally { throw 1; }",
  "try { throw 1; } catch { work(); } finally { throw 2; }",
  "if (a) return; throw 1;",
  "work(() => { return 1; }); throw 1;",
];

const ENDING = [
  "",
  "work();",
  "throw 1; work();",
  "if (a) throw 1;",
  "if (a) throw 1; else work();",
  "if (a) work(); else throw 1;",
  "try { work(); } finally { work(); }",
  "try { throw 1; } catch { work(); }",
  "try { work(); } catch { throw 1; }",
  "try { work(); } catch { throw 1; } finally { work(); }",
  "if (a) return 1; throw 2;",
  "{ if (a) { return work(); } } throw 2;",
];

for (const body of THROWING) {
  test(`a body that only throws is a Promise<void> for who overrides it: ${body}`, (t) => {
    t.is(headOf(`${TAG}\nexport async function pay() { ${body} }`), "async (): Promise<void>");
    t.is(headOf(`export class A {\n${TAG}\nasync pay() { ${body} } }`), "async (): Promise<void>");
  });
}

for (const body of ENDING) {
  test(`the type of a body that may end is the compiler's to find: ${body}`, (t) => {
    t.is(headOf(`${TAG}\nexport async function pay() { ${body} }`), "async ()");
  });
}

test("the type of an arrow function that only throws stays the compiler's", (t) => {
  t.is(headOf(`${TAG}\nexport const pay = async () => { throw 1; };`), "async ()");
});

test("a parameter that the body gives another value is a parameter of the body's function, too", (t) => {
  const source = `${TAG}\nexport async function pay(limit: number, rest: number) { limit ??= 10; rest; }`;
  t.is(headOf(source), "async (limit = limit_1)");
  const both = `${TAG}\nexport async function pay(limit: number, rest: number): Promise<void> { limit = 1; rest += 2; }`;
  t.is(headOf(both), "async (limit = limit_1, rest = rest_1): Promise<void>");
  t.regex(
    weave("a.ts", both, { ts, module: "esm" })?.code ?? "",
    / const limit_1 = limit; const rest_1 = rest;/,
  );
});
