import * as fc from "fast-check";
import test from "ava";
import { Roster } from "../../runtime/roster";

test("a roster tells what a map would tell, in the same order, whoever comes and goes", (t) => {
  const step = fc.record({ isDelete: fc.boolean(), key: fc.nat({ max: 200 }), value: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_000, size: "max" }), (steps) => {
      const roster = new Roster<number, number>();
      const map = new Map<number, number>();
      for (const { isDelete, key, value } of steps) {
        if (isDelete) t.is(roster.delete(key), map.delete(key));
        else {
          roster.set(key, value);
          map.set(key, value);
        }
        t.is(roster.get(key), map.get(key));
        t.is(roster.size, map.size);
      }
      t.deepEqual([...roster.entries()], [...map]);
      t.deepEqual([...roster.values()], [...map.values()]);
    }),
  );
});

test("who leaves while the roster is read is at most told of once more", (t) => {
  const roster = new Roster<number, number>();
  for (let n = 0; n < 500; n += 1) roster.set(n, n);
  const seen: number[] = [];
  for (const n of roster.values()) {
    seen.push(n);
    roster.delete(n);
  }
  t.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, n) => n),
  );
  t.is(roster.size, 0);
});
