import { inspect } from "node:util";
import test from "ava";
import { LockKeyError } from "../../runtime/base/errors";
import { jsonField } from "../../runtime/woven/json-field";
import { lockKey } from "../../runtime/base/key";

class Order {
  readonly #secret = "not serialized";
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
  ["a field whose name is not an identifier", { "order-no": 1 }, "order-no", 1],
] as const) {
  test(`keyType=JSON reads ${what}`, (t) => {
    t.is(jsonField(value, path), field);
  });
}

for (const [what, value, path, but] of [
  ["a missing field", { id: 7 }, "no", "it has the fields 'id'"],
  ["a field of a missing field", { id: 7 }, "user.id", "it has the fields 'id'"],
  ["a missing field of a field", { a: { b: { c: 1, d: 2 } } }, "a.b.e", "`a.b` has the fields 'c', 'd'"],
  ["a field of an object without any", { user: {} }, "user.id", "`user` has no fields"],
  ["a field of a number", { id: 7 }, "id.x", "`id` is a number"],
  ["a field of null", { user: null }, "user.id", "`user` is null"],
  ["a field of text", { name: "abc" }, "name.length", "`name` is a string"],
  ["an inherited field", { id: 7 }, "toString", "it has the fields 'id'"],
  ["a field that is not serialized", new Order("o1"), "orderNo", "it has the fields 'no', 'secretLength'"],
  ["a field that is undefined", { id: undefined }, "id", "it has no fields"],
  ["an element after the last", ["a"], "[1]", "it is an array of 1"],
  ["an element after the last of a field", { lines: ["a"] }, "lines[1].sku", "`lines` is an array of 1"],
  ["a field of an array's length", ["a"], "length.x", "`length` is a number"],
  ["a field of undefined", undefined, "id", "it is a value that JSON cannot express"],
  ["a field of a function", () => 1, "name", "it is a value that JSON cannot express"],
] as const) {
  test(`keyType=JSON rejects ${what}, and says what the JSON contains instead`, (t) => {
    t.throws(() => jsonField(value, path), {
      instanceOf: LockKeyError,
      message: `Expected the JSON to have a field \`${path}\`, but ${but}`,
    });
  });
}

test("the error names the function with keyType=JSON", (t) => {
  const found = (value: unknown): string | undefined =>
    t.throws(() => jsonField(value, "no", "A.pay"))?.message;
  t.is(found({ id: 7 }), "Expected the JSON in A.pay to have a field `no`, but it has the fields 'id'");
  t.is(found("order 7"), "Expected JSON in A.pay, got other text of 7 characters");
  t.is(found(7n), "Expected JSON in A.pay, got a value that cannot be written as JSON: 7n");
});

test("the error names at most 20 fields of an object", (t) => {
  const many = Object.fromEntries(Array.from({ length: 23 }, (_, index) => [`f${index}`, index]));
  t.throws(() => jsonField(many, "no"), { message: /'f18', 'f19' and 3 more$/ });
});

for (const [what, value, path] of [
  ["an object", { card: "hunter2", user: { password: "hunter2" } }, "user.id"],
  ["the text of an object", '{"user":{"password":"hunter2"}}', "user.id"],
  ["the text of a string", '"hunter2"', "id"],
  ["text that is not JSON", "hunter2", "id"],
  ["text that is JSON up to its end", '{"password":"hunter2"', "id"],
  ["an object that JSON cannot express", { password: "hunter2", count: 7n }, "count"],
] as const) {
  test(`the error for ${what} contains no value, not even in its cause`, (t) => {
    const error = t.throws(() => jsonField(value, path), { instanceOf: LockKeyError });
    t.false(inspect(error, { depth: 9 }).includes("hunter"));
  });
}

for (const [what, value, got] of [
  ["text that is not JSON", "order 7", "other text of 7 characters"],
  ["empty text", "", "other text of 0 characters"],
  ["a cycle", cyclic, "a value that cannot be written as JSON: { self }"],
  ["a bigint", { id: 7n }, "a value that cannot be written as JSON: { id }"],
] as const) {
  test(`keyType=JSON rejects ${what}`, (t) => {
    const error = t.throws(() => jsonField(value, "id"), {
      instanceOf: LockKeyError,
      message: `Expected JSON, got ${got}`,
    });
    t.is(error?.cause instanceof Error, typeof value === "object", "the cause would quote the text");
  });
}

test("lockKey() rejects a JSON field that is not a valid key part", (t) => {
  t.throws(() => lockKey("f", jsonField({ user: { id: 1 } }, "user")), { instanceOf: LockKeyError });
  t.throws(() => lockKey("f", jsonField({ user: null }, "user")), { instanceOf: LockKeyError });
});
