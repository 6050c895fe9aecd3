import test from "ava";
import type { Insertion, Piece } from "../../../transformer/text/edits";
import { Positions } from "../../../transformer/text/positions";

// The text on disk, with the insertions in brackets:
//
//     // order tag
//     const id = [await ][open(order)]work();[ done]
//     return id;
const TAG = "// order tag\n";
const DISK = `${TAG}const id = work();\nreturn id;\n`;

const spanOf = (text: string): { start: number; end: number } => {
  const start = DISK.indexOf(text);
  return { start, end: start + text.length };
};
const piece = (code: string, from: string, exact = false): Piece => ({ code, from: spanOf(from), exact });

const INSERTIONS: readonly Insertion[] = [
  { at: DISK.indexOf("work"), pieces: [piece("await ", "tag"), piece("order", "order", true)] },
  { at: DISK.indexOf("\nreturn"), pieces: [piece(" done", "tag")] },
];

const WOVEN = INSERTIONS.toReversed().reduce(
  (text, { at, pieces }) => text.slice(0, at) + pieces.map(({ code }) => code).join("") + text.slice(at),
  DISK,
);

const positions = new Positions(DISK, WOVEN, INSERTIONS);

/** Returns the text on disk to which a part of the woven text leads. */
function onDisk(woven: string): string {
  const start = WOVEN.indexOf(woven, TAG.length);
  const span = positions.toDisk({ start, end: start + woven.length });
  return DISK.slice(span.start, span.end);
}

/** Returns the rest of the line on disk to which the line and column of a part of the woven text lead. */
function columnOf(woven: string): string {
  const start = WOVEN.indexOf(woven, TAG.length);
  const before = WOVEN.slice(0, start).split("\n");
  const { line, column } = positions.columnToDisk(before.length - 1, before.at(-1)?.length ?? 0);
  return DISK.split("\n")[line]?.slice(column) ?? "";
}

test("code without an insertion in it maps to itself, before, between, and after insertions", (t) => {
  for (const text of ["const id", "work()", "return id;"]) t.is(onDisk(text), text);
});

test("inserted text maps to the text of the tag that it comes from", (t) => {
  t.is(onDisk("await "), "tag");
  t.is(onDisk("awa"), "tag");
});

test("a part of an exact copy of the tag's text maps to the same part of the tag", (t) => {
  t.is(onDisk("order"), "order");
  t.is(onDisk("rd"), "rd");
  t.is(onDisk("er"), "er");
});

test("a range from an insertion into the code after it maps to that code", (t) => {
  t.is(onDisk("await orderwork()"), "work()");
  t.is(onDisk("orderwork"), "work");
});

test("a range over two insertions maps to where the first one comes from", (t) => {
  t.is(onDisk("await order"), "tag");
});

test("a range with an insertion inside maps to the code around it", (t) => {
  t.is(onDisk("id = await orderwork()"), "id = work()");
  t.is(onDisk("work(); done"), "work();");
});

test("a range that ends in an insertion maps to the code before it", (t) => {
  t.is(onDisk("id = await "), "id = ");
  t.is(onDisk("id = awa"), "id = ");
  t.is(onDisk("work(); do"), "work();");
});

test("an empty range maps to an empty range", (t) => {
  const start = WOVEN.indexOf("return");
  t.deepEqual(positions.toDisk({ start, end: start }), {
    start: spanOf("return").start,
    end: spanOf("return").start,
  });
});

test("an empty range at the start of an insertion maps to where the insertion comes from", (t) => {
  const at = (text: string): ReturnType<typeof positions.toDisk> => {
    const start = WOVEN.indexOf(text, TAG.length);
    return positions.toDisk({ start, end: start });
  };
  t.deepEqual(at("await"), spanOf("tag"));
  t.deepEqual(at("order"), { start: spanOf("order").start, end: spanOf("order").start });
});

test("the column at the start of an insertion maps to the code after it", (t) => {
  t.is(columnOf("await"), "work();");
  t.is(columnOf(" done"), "");
});

test("a column inside an insertion maps to the text of the tag that it comes from", (t) => {
  t.is(columnOf("wait"), "tag");
  t.is(columnOf("order"), "order tag");
  t.is(columnOf("rder"), "rder tag");
});

test("a column outside of insertions maps to the same code", (t) => {
  t.is(columnOf("const id"), "const id = work();");
  t.is(columnOf("work();"), "work();");
  t.is(columnOf("return id"), "return id;");
  t.is(columnOf("id;"), "id;");
});

test("every line break that TypeScript knows starts a new line", (t) => {
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
