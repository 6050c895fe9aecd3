import { symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { fixtureProject, fixtures, outputOf } from "../fixtures";
import { PACKAGE, tsconfig } from "../project";
import { isMatrix } from "../../support/suites";

const COMPILE = `const { readFileSync } = require("node:fs");
const { resolve } = require("node:path");
const service = require("ts-node").create({ compiler: "ts-patch/compiler", logError: true });
const compile = (file) => service.compile(readFileSync(file, "utf8"), resolve(file)).replace(/^\\/\\/# sourceMappingURL.*/m, "");
console.log(JSON.stringify(process.argv.slice(2).map(compile)));
`;

// It runs only in the matrix, since it is too heavy for every test run.
(isMatrix ? test.serial : test.skip)(
  "ts-node with type check: compiles every fixture to the output of tspc",
  async (t) => {
    const project = await fixtureProject();
    await symlink(join(PACKAGE, "node_modules/ts-node"), project.path("node_modules/ts-node"));
    await project.write({
      "package.json": JSON.stringify({ type: "module" }),
      "tsconfig.json": tsconfig({ allowJs: true, noLib: true, jsx: "preserve" }),
      "compile.cjs": COMPILE,
    });
    await project.tspc();
    const files = fixtures.map(({ name, input }) => `src/${name}/${input}`);
    const { stdout, stderr } = await project.run("compile.cjs", ...files);
    t.not(stdout, "", stderr);
    const emitted = JSON.parse(stdout) as string[];
    for (const [index, fixture] of fixtures.entries()) {
      t.is(emitted[index], await project.read(outputOf(fixture)), fixture.name);
    }
  },
);
