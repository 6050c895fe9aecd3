import test from "ava";
import { formatOf } from "../../../transformer/hosts/register/compilers/format";
import { makeProject } from "../project";

test("the format of a file comes from Node, else from its extension, else from the nearest package.json", async (t) => {
  const project = await makeProject({
    "package.json": '{ "type": "module" }',
    "common/package.json": '{ "type": "commonjs" }',
    "unsaid/package.json": "{}",
    "strange/package.json": '{ "type": "other" }',
  });
  for (const [file, reported, format] of [
    ["a.ts", undefined, "module"],
    ["deep/er/a.js", undefined, "module"],
    ["command", undefined, "module"],
    ["common/a.ts", undefined, "commonjs"],
    ["common/a.mts", undefined, "module"],
    ["common/a.mjs", null, "module"],
    ["a.cts", undefined, "commonjs"],
    ["a.cjs", undefined, "commonjs"],
    ["unsaid/a.ts", undefined, undefined],
    ["strange/a.ts", undefined, undefined],
    ["a.ts", "commonjs-typescript", "commonjs"],
    ["common/a.ts", "module-typescript", "module"],
    ["unsaid/a.js", "module", "module"],
    ["unsaid/a.ts", "typescript", undefined],
    ["unsaid/a.json", "json", undefined],
  ] as const) {
    t.is(formatOf(project.path(file), reported), format, `${file} ${reported}`);
  }
  t.is(formatOf("/nowhere/at/all/a.ts", undefined), undefined);
});
