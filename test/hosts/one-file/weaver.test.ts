import test from "ava";
import { fileWeaver, type PluginOptions } from "../../../transformer/hosts/one-file/weaver";
import { parser } from "../../../transformer/parser/parser";

test("an error has its line and column, even at the start of a line", (t) => {
  const text = "/**\n@redisLock businessFlag=pay\nkeyNmae=id\n*/\nexport async function pay(id: string) {}\n";
  const { errors } = fileWeaver(parser())("a.ts", text) ?? {};
  t.like(errors, [{ code: "LW1002", line: 3, column: 0, length: 7, lineText: "keyNmae=id" }]);
});

test("declaration files are not woven, since they contain no code to run", (t) => {
  const tagged = "/** @redisLock businessFlag=pay */\nexport declare function pay(): Promise<void>;\n";
  for (const name of ["pay.d.ts", "pay.d.mts", "pay.d.cts", "pay.d.vue.ts"]) {
    t.is(fileWeaver(parser())(name, tagged), undefined, name);
  }
  t.is(fileWeaver(parser())("pay.ts", tagged)?.errors.length, 1);
});

test("code in a file named like a declaration file is woven, since a host may run it", (t) => {
  const tagged = "/** @redisLock businessFlag=pay */\nexport async function pay(): Promise<void> {}\n";
  for (const name of ["pay.d.orders.ts", "src/pay.d.v1.orders.ts", "pay.d.ts", "pay.d.mts"]) {
    const woven = fileWeaver(parser())(name, tagged);
    t.regex(woven?.code ?? "", /lockweave\.acquire\(/, name);
    t.deepEqual(woven?.errors, [], name);
  }
});

test("the error for several unknown options names the first", (t) => {
  t.throws(() => fileWeaver(parser(), { default: {}, deflauts: {} } as PluginOptions), {
    message: "lockweave's plugin has no option `default`. Did you mean `defaults`?",
  });
});

test("an inherited plugin option or default is an error that names it", (t) => {
  const inheriting = Object.create({ defaults: { onFailure: "skip" } }) as PluginOptions;
  t.throws(() => fileWeaver(parser(), inheriting), { message: /The option `defaults` is inherited/ });
  const defaults = Object.create({ onFailure: "skip" }) as Record<string, unknown>;
  t.throws(() => fileWeaver(parser(), { defaults }), { message: /The option `onFailure` is inherited/ });
});
