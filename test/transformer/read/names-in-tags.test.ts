import test from "ava";
import { parser } from "../../../transformer/parser/parser";
import { namesInTag, parsedTagsIn } from "../../../transformer/read/names-in-tags";

function namesIn(attributes: string): string[] {
  const ts = parser();
  const text = `/** @redisLock ${attributes} */ async function pay(order) {}`;
  const file = ts.createSourceFile("pay.ts", text, ts.ScriptTarget.Latest);
  const [found] = parsedTagsIn({ ts, file });
  if (found === undefined) throw new Error("There is no tag");
  return [...namesInTag({ ts, file }, found.tag)];
}

for (const [attributes, names] of [
  ["businessFlag=pay store=main waitTime=5s", []],
  ["businessFlag=pay keyName=order.id,this.region,list[0]", ["order", "list"]],
  ['businessFlag=pay keyName="shardOf({ a: order.id, ...rest })"', ["shardOf", "order", "rest"]],
  ['key="pay:${keys.of(order.id)}:${`x${y}`}"', ["keys", "order", "y"]],
  ["businessFlag=pay keyName=order keyType=CLASS keyClass=types.Order fieldName=id", ["order", "types"]],
  ["businessFlag=pay when=isLarge(order) onFailure=errors.Busy", ["isLarge", "order", "errors"]],
  [
    'businessFlag=pay keyName=order keyNme=x when="not ( an expression" wrong',
    ["order", "not", "an", "expression"],
  ],
] as const) {
  test(`a tag with ${attributes} uses the names ${names.join(", ") || "of no variables"}`, (t) => {
    t.deepEqual(namesIn(attributes), [...names]);
  });
}
