import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "ava";
import { outputFiles } from "../../../transformer/verify/outputs";

const DIR = realpathSync(mkdtempSync(join(tmpdir(), "outputs-")));
test.after.always(() => rmSync(DIR, { recursive: true }));

const FILES = [
  "out/a.js",
  "out/a.d.ts",
  "out/a.js.map",
  "out/deep/b.mjs",
  "out/deep/c.cjs",
  "out/deep/d.jsx",
  "out/node_modules/e.js",
  "other/f.js",
];
for (const file of FILES) {
  mkdirSync(join(DIR, dirname(file)), { recursive: true });
  writeFileSync(join(DIR, file), "");
}
symlinkSync("nowhere.js", join(DIR, "out/gone.js"));

const FOUND: Record<string, readonly string[]> = {
  "out/a.d.ts": ["out/a.d.ts"],
  out: ["out/a.js", "out/deep/b.mjs", "out/deep/c.cjs", "out/deep/d.jsx"],
  "out/*.js": ["out/a.js"],
  "out/?.js": ["out/a.js"],
  "out/**/*.{cjs,mjs}": ["out/deep/b.mjs", "out/deep/c.cjs"],
  "**/*.js": ["other/f.js", "out/a.js"],
  "*/f.js": ["other/f.js"],
};

for (const [path, expected] of Object.entries(FOUND)) {
  test(`\`--output ${path}\` finds the files that it names, except broken links and files in node_modules`, (t) => {
    t.deepEqual(outputFiles([path], DIR).toSorted(), expected.map((file) => join(DIR, file)).toSorted());
  });
}

test("a file that --output names twice is found once", (t) => {
  t.deepEqual(outputFiles(["other", "other/f.js"], DIR), [join(DIR, "other/f.js")]);
});

for (const path of ["out/nothing.js", "nowhere", "out/*.tsx", "nowhere/*.js"]) {
  test(`\`--output ${path}\` is an error because it names no JavaScript file`, (t) => {
    t.throws(() => outputFiles([path], DIR), {
      message: `No JavaScript file matches \`--output ${path}\`.`,
    });
  });
}
