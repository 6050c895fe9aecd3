import test from "ava";
import { sourceFileOf } from "../../../transformer/hosts/bundlers/source-files";

for (const [id, file] of [
  ["/app/src/pay.ts", "/app/src/pay.ts"],
  ["/app/src/pay.mts", "/app/src/pay.mts"],
  ["/app/src/pay.cts", "/app/src/pay.cts"],
  ["/app/src/pay.tsx", "/app/src/pay.tsx"],
  ["/app/src/pay.js", "/app/src/pay.js"],
  ["/app/src/pay.cjs", "/app/src/pay.cjs"],
  ["/app/src/pay.ts?v=1", "/app/src/pay.ts"],
  ["/app/src/#pay.ts", "/app/src/#pay.ts"],
  ["/app/src/pay.ts#top", "/app/src/pay.ts"],
  ["/app/src/pay.ts?v=1#top", "/app/src/pay.ts"],
  ["/app/#src/pay.ts#top?v=1", "/app/#src/pay.ts"],
  ["/app/src/pay.ts?raw=0", "/app/src/pay.ts"],
  ["/app/src/pay.d.orders.ts", "/app/src/pay.d.orders.ts"],
  ["C:\\app\\src\\pay.ts", "C:\\app\\src\\pay.ts"],
  ["/app/src/Pay.vue?vue&type=script&setup=true&lang.ts", "/app/src/Pay.vue.ts"],
  ["/app/src/Pay.vue?vue&type=script&lang=tsx&", "/app/src/Pay.vue.tsx"],
] as const) {
  test(`${id} is parsed as ${file}`, (t) => {
    t.is(sourceFileOf(id), file);
  });
}

for (const id of [
  "/app/src/pay.css",
  "/app/src/pay.json",
  "/app/src/Pay.vue",
  "/app/src/Pay.vue?vue&type=style&lang.css",
  "/app/src/pay.ts?raw",
  "/app/src/pay.ts?v=1&url",
  "/app/src/pay.ts?raw&v=1",
  "/app/src/pay.ts#top/pay.css",
  "/app/node_modules/pay/src/pay.ts",
  "C:\\app\\node_modules\\pay\\pay.js",
  "\0virtual:pay.ts",
]) {
  test(`${JSON.stringify(id)} is not parsed`, (t) => {
    t.is(sourceFileOf(id), undefined);
  });
}
