import { decode, encode, type SourceMapMappings } from "@jridgewell/sourcemap-codec";
import test from "ava";
import { Positions } from "../../../transformer/text/positions";
import { inlineMap, mapToDisk, type TextOnDisk, type SourceMap } from "../../../transformer/text/source-map";

// `await ` is inserted before `work`, in the first of two sources only.
const TEXT = "// tag\nwork();\n";
const AT = TEXT.indexOf("work");
const WOVEN = `${TEXT.slice(0, AT)}await ${TEXT.slice(AT)}`;
const ON_DISK: TextOnDisk = {
  text: TEXT,
  positions: new Positions(TEXT, WOVEN, [
    { at: AT, pieces: [{ code: "await ", from: { start: 3, end: 6 }, exact: false }] },
  ]),
};
const MAP = {
  version: 3,
  sources: ["woven.ts", "other.ts"],
  sourcesContent: [WOVEN, "other();\n"],
  names: ["work"],
};

const mapOf = (mappings: SourceMapMappings): string => JSON.stringify({ ...MAP, mappings: encode(mappings) });

const sourceOf = (source: string): TextOnDisk | undefined => (source === "woven.ts" ? ON_DISK : undefined);

const mappingsIn = (json: string): SourceMapMappings => decode((JSON.parse(json) as SourceMap).mappings);

test("a map of a woven text is changed to point to the text on disk, and keeps its names", (t) => {
  const woven: SourceMapMappings = [[[0, 0, 1, 0], [6, 0, 1, 6, 0], [10]]];
  const corrected = mapToDisk("out.js.map", mapOf(woven), sourceOf);
  t.deepEqual(mappingsIn(corrected), [[[0, 0, 1, 0], [6, 0, 1, 0, 0], [10]]]);
  t.deepEqual((JSON.parse(corrected) as SourceMap).sourcesContent, [TEXT, "other();\n"]);
});

test("the mappings of other sources stay unchanged", (t) => {
  const other: SourceMapMappings = [[[0, 1, 1, 6, 0]]];
  t.deepEqual(mappingsIn(mapToDisk("out.js.map", mapOf(other), sourceOf)), other);
});

test("a source map without source texts is not given any", (t) => {
  const { sourcesContent: _, ...without } = JSON.parse(mapOf([])) as Record<string, unknown>;
  t.deepEqual(JSON.parse(mapToDisk("out.js.map", JSON.stringify(without), sourceOf)), without);
});

test("the lookup of a source receives the map that names the source", (t) => {
  const asked: [string, string | undefined][] = [];
  const map = JSON.stringify({ ...MAP, sourceRoot: "src", mappings: "" });
  mapToDisk("out.js.map", map, (source, { sourceRoot }) => {
    asked.push([source, sourceRoot]);
    return undefined;
  });
  t.deepEqual(asked, [
    ["woven.ts", "src"],
    ["other.ts", "src"],
  ]);
});

test("code with an inline map stays the same, and its map points to the text on disk", (t) => {
  const woven = JSON.parse(mapOf([[[6, 0, 1, 6]]])) as object;
  const output = mapToDisk("out.js", `await work();${inlineMap(woven)}`, sourceOf);
  const [code, encoded] = output.split("\n//# sourceMappingURL=data:application/json;base64,");
  t.is(code, "await work();");
  t.deepEqual(mappingsIn(Buffer.from(encoded ?? "", "base64").toString()), [[[6, 0, 1, 0]]]);
});

test("code without an inline map stays unchanged", (t) => {
  const code = "await work();\n//# sourceMappingURL=out.js.map\n";
  t.is(mapToDisk("out.js", code, sourceOf), code);
});
