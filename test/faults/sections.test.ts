import test from "ava";
import { judge, type Section } from "../support/sections";

// Tests of judge(), with which other tests find bodies that overlap.

function section(name: string, enteredAt: number, leftAt: number, others: Partial<Section> = {}): Section {
  return { name, enteredAt, leftAt, believedUntil: leftAt + 100, ...others };
}

test("bodies in sequence do not overlap, even if one enters as the other leaves", (t) => {
  const verdict = judge([section("a", 0, 10), section("c", 25, 30), section("b", 10, 20)]);
  t.deepEqual(verdict, {
    sections: 3,
    overlaps: 0,
    signaledBefore: 0,
    noticedOnWaking: 0,
    unannounced: [],
    fallenTokens: [],
  });
});

test("two bodies that trust the same lock at once are an unannounced overlap", (t) => {
  const { overlaps, unannounced } = judge([section("a", 0, 10), section("b", 9.9, 20)]);
  t.is(overlaps, 1);
  t.is(unannounced.length, 1);
  t.regex(unannounced.join(""), /^a in 0\.00\.\.10\.00, .* and b in 9\.90/);
});

test("an overlap is announced if the first body's signal aborted before the second body entered", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 50, signaledAt: 51 });
  const { overlaps, signaledBefore, unannounced } = judge([earlier, section("b", 52, 60)]);
  t.deepEqual([overlaps, signaledBefore, unannounced.length], [1, 1, 0]);
});

test("an overlap with a frozen body is announced if its deadline passed before the other body entered", (t) => {
  const frozen = section("a", 0, 100, { believedUntil: 50, signaledAt: 90 });
  const verdict = judge([frozen, section("b", 52, 60)]);
  t.deepEqual([verdict.signaledBefore, verdict.noticedOnWaking, verdict.unannounced.length], [0, 1, 0]);
});

test("judge() finds a holder that trusted its lock a moment too long", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 52.1, signaledAt: 53 });
  t.is(judge([earlier, section("b", 52, 60)]).unannounced.length, 1);
});

test("judge() finds a holder whose signal did not abort by the tick after its deadline", (t) => {
  const earlier = section("a", 0, 100, { believedUntil: 50, missedSignal: true });
  t.is(judge([earlier, section("b", 52, 60)]).unannounced.length, 1);
});

test("each body that enters during one long body is a separate overlap", (t) => {
  const long = section("a", 0, 100);
  const { overlaps, unannounced } = judge([long, section("b", 10, 20), section("c", 30, 40)]);
  t.is(overlaps, 2);
  t.is(unannounced.length, 2);
});

test("judge() finds a fencing token that does not rise", (t) => {
  const tokens = [5, 6, 6, 9, 8];
  const sections = tokens.map((fencingToken, index) =>
    section(`s${index}`, 10 * index, 10 * index + 5, { fencingToken }),
  );
  const { fallenTokens } = judge(sections);
  t.deepEqual(fallenTokens, ["6 of s1, then 6 of s2", "9 of s3, then 8 of s4"]);
});

test("judge() accepts bodies without a fencing token", (t) => {
  t.deepEqual(judge([section("a", 0, 1), section("b", 2, 3)]).fallenTokens, []);
});
