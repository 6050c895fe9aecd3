import test from "ava";
import { openProjects } from "../../transformer/cli/project";
import { makeProject } from "../hosts/project";

test("what TypeScript 7 says of a tsconfig.json that it cannot read is told", async (t) => {
  for (const [said, message] of [
    ["tsconfig.json(1,3): error TS5023: Unknown compiler option 'x'.", "Unknown compiler option 'x'."],
    ["panic: runtime error", "panic: runtime error"],
  ] as const) {
    const project = await makeProject({
      "app/tsconfig.json": "{}",
      "app/node_modules/typescript/package.json": `{ "version": "7.0.2", "bin": { "tsc": "tsc.js" } }`,
      "app/node_modules/typescript/tsc.js": `console.log(${JSON.stringify(said)}); process.exitCode = 1;`,
    });
    const config = project.path("app/tsconfig.json");
    t.throws(() => openProjects(config, project.dir), { message: `${config}: ${message}` });
  }
});
