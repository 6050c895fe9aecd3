import test from "ava";
import ts from "typescript";
import { curesOf } from "../../../transformer/hosts/language-service/cures";

test("a script with a tag is made a module, on a line of its own", (t) => {
  const script = "/** @redisLock businessFlag=pay */\nasync function pay() {}";
  for (const text of [script, `${script}\n`]) {
    const file = ts.createSourceFile("script.ts", text, ts.ScriptTarget.Latest);
    const found = { ts, file, start: 4, length: 10, words: "@redisLock", message: "" };
    const [change, ...others] = curesOf("LW1309", found).flatMap(({ changes }) => changes);
    t.deepEqual([change?.span, others], [{ start: text.length, length: 0 }, []]);
    t.is(text + change?.newText, `${script}\nexport {};\n`);
  }
});

test("a tag without a flag is given the name of its function, as the cure says", (t) => {
  const text = "/** @redisLock keyName=id */\nexport async function pay(id: string) {}";
  const file = ts.createSourceFile("pay.ts", text, ts.ScriptTarget.Latest);
  const start = text.indexOf("@");
  const found = { ts, file, start, length: "@redisLock".length, words: "@redisLock", message: "" };
  t.deepEqual(curesOf("LW1101", found), [
    {
      description: "Add `businessFlag=pay`",
      changes: [{ span: { start: start + "@redisLock".length, length: 0 }, newText: " businessFlag=pay" }],
    },
  ]);
});
