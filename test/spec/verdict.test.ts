import test from "ava";
import { judge, unreachedIn } from "./verdict";

const MODEL = { defines: [], isMutant: false };
const MUTANT = { defines: ["RULE"], isMutant: true };
const END = (errors: number): string =>
  `State-vector 76 byte, depth reached 42, errors: ${errors}\n   775718 states, stored\n`;

test("a complete search without an error passes", (t) => {
  t.deepEqual(judge(END(0), MODEL), { problem: undefined, states: 775_718, depth: 42 });
});

test("a model with an error fails, and the problem quotes the assertion", (t) => {
  const output = `pan:1: assertion violated (1<0) (at depth 7)\n${END(1)}`;
  t.is(judge(output, MODEL).problem, "there is an error: assertion violated (1<0) (at depth 7)");
});

test("a search that was cut off fails", (t) => {
  for (const note of ["error: max search depth too small", "pan: reached -DMEMLIM bound"])
    t.is(judge(`${note}\n${END(0)}`, MODEL).problem, "the search was cut off");
  t.regex(judge("pan: out of memory", MODEL).problem ?? "", /ended without a result/);
});

test("a mutant passes only if it violates an assertion of the model or waits forever", (t) => {
  t.is(judge(`pan:1: assertion violated (1<0)\n${END(1)}`, MUTANT).problem, undefined);
  t.is(judge(`pan:1: acceptance cycle (at depth 92)\n${END(1)}`, MUTANT).problem, undefined);
  t.truthy(judge(END(0), MUTANT).problem);
  t.truthy(judge(`pan:1: assertion violated - invalid array index\n${END(1)}`, MUTANT).problem);
});

test("statements that never run are listed with their lines", (t) => {
  const output = '\t/x/lock.pml:205, state 77, "x = 0"\n\t/x/lock.pml:210, state 78, "-end-"\n';
  t.deepEqual(unreachedIn(output), ["line 205: x = 0"]);
});
