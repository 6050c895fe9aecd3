import test from "ava";
import { fileWeaver } from "../../../transformer/hosts/one-file/weaver";
import { parser } from "../../../transformer/parser/parser";

test("a mistake is at its line and column, also at the very start of a line", (t) => {
  const text = "/**\n@redisLock businessFlag=pay\nkeyNmae=id\n*/\nexport async function pay(id: string) {}\n";
  const { errors } = fileWeaver(parser())("a.ts", text) ?? {};
  t.like(errors, [{ code: "LW1002", line: 3, column: 0, length: 7, lineText: "keyNmae=id" }]);
});
