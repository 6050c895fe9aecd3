import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** Counts the nodes that the weave visits in a file with that many tagged functions that call currentLock(). */
function visited(functions: number): number {
  const numbers = Array.from({ length: functions }, (_, index) => index);
  const tagged = numbers.map(
    (index) => `/** @redisLock businessFlag=flag${index} keyName=no */
export async function pay${index}(no: string): Promise<string> {
  const { key } = currentLock();
  return key + no;
}`,
  );
  const text = ['import { currentLock } from "lockweave";', ...tagged].join("\n");
  let visits = 0;
  const forEachChild: typeof ts.forEachChild = (node, visitNode, visitNodes) => {
    visits += 1;
    return ts.forEachChild(node, visitNode, visitNodes);
  };
  const woven = weave("pay.ts", text, { ts: { ...ts, forEachChild }, module: "esm" });
  if (woven?.sites.length !== functions) throw new Error("not all functions were woven");
  return visits;
}

test("a file with twice the tags and calls of currentLock() takes twice the work", (t) => {
  const [one, double] = [visited(100), visited(200)];
  t.true(double < 2.2 * one, `${one} visits for 100 functions, ${double} for 200`);
});

test("an expression of 20,000 steps is reported as an error, and its file refuses to run", (t) => {
  const steps = {
    sum: Array.from({ length: 20_000 }, () => "no").join(" + "),
    calls: `no${".trim()".repeat(20_000)}`,
  };
  for (const [name, expression] of Object.entries(steps)) {
    const text = `/** @redisLock businessFlag=pay keyName=no */
export async function pay(no: string): Promise<string> {
  return ${expression};
}
`;
    const woven = weave("pay.ts", text, { ts, module: "esm" });
    t.like(woven?.diagnostics, [{ code: "LW1408", start: text.indexOf("@redisLock") }], name);
    t.regex(woven?.code ?? "", /^throw new Error\("pay\.ts:1: LW1408: /m, name);
  }
});
