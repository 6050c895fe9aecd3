import test from "ava";
import ts from "typescript";
import { openProjects } from "../../transformer/cli/project";
import { makeProject, type Files } from "../hosts/project";

test("an invalid tsconfig.json is reported with the message of TypeScript 7", async (t) => {
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

test("a project uses its own TypeScript from 5.9 on, and Lockweave's if it is older", async (t) => {
  const standIn = (version: string): Files => ({
    "app/tsconfig.json": JSON.stringify({ compilerOptions: { types: [] }, files: ["a.ts"] }),
    "app/a.ts": "export {};\n",
    "app/node_modules/typescript/index.js": `module.exports = { ...require(${JSON.stringify(require.resolve("typescript"))}), version: "${version}" };`,
  });
  for (const [version, used] of [
    ["6.99.0", "6.99.0"],
    ["5.9.0", "5.9.0"],
    ["5.8.9", ts.version],
  ] as const) {
    const project = await makeProject(standIn(version));
    const [opened] = openProjects(project.path("app/tsconfig.json"), project.dir);
    t.is((opened?.ts as typeof ts | undefined)?.version, used);
  }
});
