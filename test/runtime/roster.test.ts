import * as fc from "fast-check";
import test from "ava";
import { RecyclingMap } from "../../runtime/recycling-map";

interface Guest {
  readonly name: number;
}

test("a roster tells what a map would tell, whoever comes and goes", (t) => {
  const step = fc.record({ isDelete: fc.boolean(), key: fc.nat({ max: 200 }), name: fc.nat() });
  const inOrder = (entries: Iterable<[number, Guest]>): [number, Guest][] =>
    [...entries].toSorted(([a], [b]) => a - b);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_000, size: "max" }), (steps) => {
      const roster = new RecyclingMap<number, Guest>();
      const map = new Map<number, Guest>();
      for (const { isDelete, key, name } of steps) {
        if (isDelete) t.is(roster.delete(key), map.delete(key));
        else {
          roster.set(key, { name });
          map.set(key, { name });
        }
        t.deepEqual(roster.get(key), map.get(key));
        t.is(roster.size, map.size);
      }
      t.deepEqual(inOrder(roster.entries()), inOrder(map));
      t.is([...roster.values()].length, map.size);
    }),
  );
});

test("who leaves while the roster is read does not keep others from being told of", (t) => {
  const roster = new RecyclingMap<number, Guest>();
  for (let name = 0; name < 500; name += 1) roster.set(name, { name });
  const seen: number[] = [];
  for (const { name } of roster.values()) {
    seen.push(name);
    roster.delete(name);
  }
  t.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, name) => name),
  );
  t.is(roster.size, 0);
});
