import test from "ava";
import type { Insertion, Piece } from "../../../transformer/text/edits";
import { Positions } from "../../../transformer/text/positions";

// On disk, with what is inserted in brackets:
//
//     // order tag
//     const id = [await ][open(order)]work();[ done]
//     return id;
const TAG = "// order tag\n";
const DISK = `${TAG}const id = work();\nreturn id;\n`;

const words = (text: string): { start: number; end: number } => {
  const start = DISK.indexOf(text);
  return { start, end: start + text.length };
};
const piece = (code: string, from: string, exact = false): Piece => ({ code, from: words(from), exact });

const INSERTIONS: readonly Insertion[] = [
  { at: DISK.indexOf("work"), pieces: [piece("await ", "tag"), piece("order", "order", true)] },
  { at: DISK.indexOf("\nreturn"), pieces: [piece(" done", "tag")] },
];

const WOVEN = INSERTIONS.toReversed().reduce(
  (text, { at, pieces }) => text.slice(0, at) + pieces.map(({ code }) => code).join("") + text.slice(at),
  DISK,
);

const positions = new Positions(DISK, WOVEN, INSERTIONS);

/** What is on disk at the place that the words of the woven text lead to. */
function onDisk(woven: string): string {
  const start = WOVEN.indexOf(woven, TAG.length);
  const span = positions.toDisk({ start, end: start + woven.length });
  return DISK.slice(span.start, span.end);
}

/** What begins on disk at the line and column that the words of the woven text lead to. */
function columnOf(woven: string): string {
  const start = WOVEN.indexOf(woven, TAG.length);
  const before = WOVEN.slice(0, start).split("\n");
  const { line, column } = positions.columnToDisk(before.length - 1, before.at(-1)?.length ?? 0);
  return DISK.split("\n")[line]?.slice(column) ?? "";
}

test("what nothing was inserted into is where it was, before, between and behind insertions", (t) => {
  for (const text of ["const id", "work()", "return id;"]) t.is(onDisk(text), text);
});

test("an inserted word leads to the words of the tag that it was made from", (t) => {
  t.is(onDisk("await "), "tag");
  t.is(onDisk("awa"), "tag");
});

test("a part of a word that was taken over as it is leads to that part", (t) => {
  t.is(onDisk("order"), "order");
  t.is(onDisk("rd"), "rd");
  t.is(onDisk("er"), "er");
});

test("a range that begins in an insertion and ends behind it is the code behind it", (t) => {
  t.is(onDisk("await orderwork()"), "work()");
  t.is(onDisk("orderwork"), "work");
});

test("a range over two inserted words leads to where the first was made from", (t) => {
  t.is(onDisk("await order"), "tag");
});

test("a range with an insertion inside is the code around it", (t) => {
  t.is(onDisk("id = await orderwork()"), "id = work()");
  t.is(onDisk("work(); done"), "work();");
});

test("a range that ends in an insertion ends before it", (t) => {
  t.is(onDisk("id = await "), "id = ");
  t.is(onDisk("id = awa"), "id = ");
  t.is(onDisk("work(); do"), "work();");
});

test("an empty range is a place", (t) => {
  const start = WOVEN.indexOf("return");
  t.deepEqual(positions.toDisk({ start, end: start }), {
    start: words("return").start,
    end: words("return").start,
  });
});

test("an empty range where an inserted word begins leads to where the word was made from", (t) => {
  const at = (text: string): ReturnType<typeof positions.toDisk> => {
    const start = WOVEN.indexOf(text, TAG.length);
    return positions.toDisk({ start, end: start });
  };
  t.deepEqual(at("await"), words("tag"));
  t.deepEqual(at("order"), { start: words("order").start, end: words("order").start });
});

test("the column where an insertion begins is that of the code it stands before", (t) => {
  t.is(columnOf("await"), "work();");
  t.is(columnOf(" done"), "");
});

test("a column inside an insertion is that of the words it was made from", (t) => {
  t.is(columnOf("wait"), "tag");
  t.is(columnOf("order"), "order tag");
  t.is(columnOf("rder"), "rder tag");
});

test("a column outside of insertions stands before the same code", (t) => {
  t.is(columnOf("const id"), "const id = work();");
  t.is(columnOf("work();"), "work();");
  t.is(columnOf("return id"), "return id;");
  t.is(columnOf("id;"), "id;");
});

test("lines are counted as TypeScript counts them", (t) => {
  for (const lineBreak of ["\n", "\r\n", "\r", "\u2028", "\u2029"]) {
    const disk = `a();${lineBreak}b();`;
    const at = disk.indexOf("b");
    const from = { start: 0, end: 1 };
    const insertions = [{ at, pieces: [{ code: "await ", from, exact: false }] }];
    const woven = `${disk.slice(0, at)}await ${disk.slice(at)}`;
    t.deepEqual(new Positions(disk, woven, insertions).columnToDisk(1, 6), { line: 1, column: 0 });
    t.deepEqual(new Positions(disk, woven, insertions).columnToDisk(1, 2), { line: 0, column: 0 });
  }
});
