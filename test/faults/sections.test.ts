import test from "ava";
import { judge, type Section } from "../support/sections";

// The judge of mutual exclusion is judged itself: one that cannot find anything finds nothing.

function section(name: string, enteredAt: number, leftAt: number, others: Partial<Section> = {}): Section {
  return { name, enteredAt, leftAt, believedUntil: leftAt + 100, ...others };
}

test("bodies that come one after the other do not overlap, also when one enters as the other leaves", (t) => {
  const verdict = judge([section("a", 0, 10), section("c", 25, 30), section("b", 10, 20)]);
  t.deepEqual(verdict, {
    sections: 3,
    overlaps: 0,
    foretold: 0,
    noticedOnWaking: 0,
    unannounced: [],
    tokensThatFell: [],
  });
});

test("two who are in and both believe that the lock is theirs are an unannounced overlap", (t) => {
  const { overlaps, unannounced } = judge([section("a", 0, 10), section("b", 9.9, 20)]);
  t.is(overlaps, 1);
  t.is(unannounced.length, 1);
  t.regex(unannounced.join(""), /^a in 0\.00\.\.10\.00, .* and b in 9\.90/);
});

test("an overlap is foretold when the earlier one's signal fired before the later one entered", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 50, toldAt: 51 });
  const { overlaps, foretold, unannounced } = judge([earlier, section("b", 52, 60)]);
  t.deepEqual([overlaps, foretold, unannounced.length], [1, 1, 0]);
});

test("one that stood still counts as announced when it was over by its own clock before the later one entered", (t) => {
  const frozen = section("a", 0, 100, { believedUntil: 50, toldAt: 90 });
  const verdict = judge([frozen, section("b", 52, 60)]);
  t.deepEqual([verdict.foretold, verdict.noticedOnWaking, verdict.unannounced.length], [0, 1, 0]);
});

test("a holder that believed a moment too long is found", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 52.1, toldAt: 53 });
  t.is(judge([earlier, section("b", 52, 60)]).unannounced.length, 1);
});

test("a holder that was over and came to its next tick without being told is found", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 50, wasLeftInTheDark: true });
  t.is(judge([earlier, section("b", 52, 60)]).unannounced.length, 1);
});

test("everyone who enters while one long body is in is an overlap of its own", (t) => {
  const long = section("a", 0, 100);
  const { overlaps, unannounced } = judge([long, section("b", 10, 20), section("c", 30, 40)]);
  t.is(overlaps, 2);
  t.is(unannounced.length, 2);
});

test("a fencing token that does not rise from one who enters to the next is found", (t) => {
  const tokens = [5, 6, 6, 9, 8];
  const sections = tokens.map((fencingToken, index) =>
    section(`s${index}`, 10 * index, 10 * index + 5, { fencingToken }),
  );
  const { tokensThatFell } = judge(sections);
  t.deepEqual(tokensThatFell, ["6 of s1, then 6 of s2", "9 of s3, then 8 of s4"]);
});

test("who draws no token is not blamed for it", (t) => {
  t.deepEqual(judge([section("a", 0, 1), section("b", 2, 3)]).tokensThatFell, []);
});
