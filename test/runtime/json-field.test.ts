import test from "ava";
import { LockKeyError } from "../../runtime/errors";
import { jsonField } from "../../runtime/json-field";
import { lockKey } from "../../runtime/key";

class Order {
  readonly #secret = "not serialised";
  constructor(readonly orderNo: string) {}
  toJSON(): object {
    return { no: this.orderNo, secretLength: this.#secret.length };
  }
}

const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

for (const [what, value, path, field] of [
  ["a field", { id: 7 }, "id", 7],
  ["a field of a field", { user: { id: "u" } }, "user.id", "u"],
  ["an element", { lines: [{ sku: "a" }, { sku: "b" }] }, "lines[1].sku", "b"],
  ["an element of an element", { rows: [[1, 2]] }, "rows[0][1]", 2],
  ["an element of an array", ["a", "b"], "[1]", "b"],
  ["an element by a plain number", ["a", "b"], "1", "b"],
  ["what toJSON makes", new Order("o1"), "no", "o1"],
  ["a field under what toJSON makes", { order: new Order("o1") }, "order.no", "o1"],
  ["a date", { at: new Date(0) }, "at", "1970-01-01T00:00:00.000Z"],
  ["an entry of a Map", new Map([["id", 7]]), "id", 7],
  ["an entry of a Map in a Map", new Map([["user", new Map([["id", 7]])]]), "user.id", 7],
  ["an entry of a Map in an object in an array", [{ user: new Map([["id", 7]]) }], "[0].user.id", 7],
  ["a field of JSON text", '{"id":"x"}', "id", "x"],
  ["a field deep in JSON text", '{"lines":[{"sku":"a"}]}', "lines[0].sku", "a"],
  ["a field that is false", { paid: false }, "paid", false],
  ["a field that is 0", { n: 0 }, "n", 0],
  ["a field whose name is not a name", { "order-no": 1 }, "order-no", 1],
] as const) {
  test(`keyType=JSON reads ${what}`, (t) => {
    t.is(jsonField(value, path), field);
  });
}

for (const [what, value, path] of [
  ["a missing field", { id: 7 }, "no"],
  ["a field of a missing field", { id: 7 }, "user.id"],
  ["a field of a number", { id: 7 }, "id.x"],
  ["a field of null", { user: null }, "user.id"],
  ["a field of text", { name: "abc" }, "name.length"],
  ["an inherited field", { id: 7 }, "toString"],
  ["a field that is not serialised", new Order("o1"), "orderNo"],
  ["a field that is undefined", { id: undefined }, "id"],
  ["an element after the last", ["a"], "[1]"],
  ["the length of an array", ["a"], "length.x"],
  ["a field of undefined", undefined, "id"],
  ["a field of a function", () => 1, "name"],
] as const) {
  test(`keyType=JSON refuses ${what}`, (t) => {
    t.throws(() => jsonField(value, path), {
      instanceOf: LockKeyError,
      message: new RegExp(
        `^Expected the JSON of [^]* to have a field \`${path.replaceAll(/[[\].]/g, String.raw`\$&`)}\`$`,
      ),
    });
  });
}

for (const [what, value] of [
  ["text that is not JSON", "order 7"],
  ["empty text", ""],
  ["a cycle", cyclic],
  ["a bigint", { id: 7n }],
] as const) {
  test(`keyType=JSON refuses ${what}, and tells why`, (t) => {
    const error = t.throws(() => jsonField(value, "id"), {
      instanceOf: LockKeyError,
      message: /^Expected JSON, got/,
    });
    t.true(error?.cause instanceof Error);
  });
}

test("a field that is no identity is refused by the key", (t) => {
  t.throws(() => lockKey("f", jsonField({ user: { id: 1 } }, "user")), { instanceOf: LockKeyError });
  t.throws(() => lockKey("f", jsonField({ user: null }, "user")), { instanceOf: LockKeyError });
});
