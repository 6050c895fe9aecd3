import * as fc from "fast-check";
import test from "ava";
import { RecyclingMap } from "../../runtime/base/recycling-map";

interface Entry {
  readonly name: number;
}

test("a RecyclingMap behaves like a Map for any sequence of set() and delete()", (t) => {
  const step = fc.record({ isDelete: fc.boolean(), key: fc.nat({ max: 200 }), name: fc.nat() });
  const inOrder = (entries: Iterable<[number, Entry]>): [number, Entry][] =>
    [...entries].toSorted(([a], [b]) => a - b);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_000, size: "max" }), (steps) => {
      const recycling = new RecyclingMap<number, Entry>();
      const map = new Map<number, Entry>();
      for (const { isDelete, key, name } of steps) {
        if (isDelete) t.is(recycling.delete(key), map.delete(key));
        else {
          recycling.set(key, { name });
          map.set(key, { name });
        }
        t.deepEqual(recycling.get(key), map.get(key));
        t.is(recycling.size, map.size);
      }
      t.deepEqual(inOrder(recycling.entries()), inOrder(map));
      t.is([...recycling.values()].length, map.size);
    }),
  );
});

test("a RecyclingMap visits every value even if entries are deleted during the iteration", (t) => {
  const recycling = new RecyclingMap<number, Entry>();
  for (let name = 0; name < 500; name += 1) recycling.set(name, { name });
  const seen: number[] = [];
  for (const { name } of recycling.values()) {
    seen.push(name);
    recycling.delete(name);
  }
  t.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, name) => name),
  );
  t.is(recycling.size, 0);
});
