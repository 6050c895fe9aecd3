import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeProject, PACKAGE, type Project } from "./project";

// The fixtures that all hosts must weave to the same text.

const FIXTURES = join(PACKAGE, "test/fixtures/weave");

interface Fixture {
  readonly name: string;
  readonly input: string;
  readonly text: string;
  readonly woven: string;
}

export const fixtures = readdirSync(FIXTURES).map((name): Fixture => {
  const input = readdirSync(join(FIXTURES, name)).find((file) => file.startsWith("input.")) ?? "";
  const read = (file: string): string => readFileSync(join(FIXTURES, name, file), "utf8");
  return { name, input, text: read(input), woven: read(input.replace("input", "woven")) };
});

/** A transformer that returns its input unchanged. */
const INNER = "exports.process = (code) => ({ code });\n";

/** Creates a project with each input in its own directory. */
export async function fixtureProject(): Promise<Project> {
  const files = fixtures.map(({ name, input, text }) => [`src/${name}/${input}`, text] as const);
  return await makeProject({ ...Object.fromEntries(files), "inner.js": INNER, "package.json": "{}" });
}

/** Returns the path of the compiler's output. */
export function outputOf({ name, input }: Fixture): string {
  return `out/${name}/${input.replace(/\.([cm]?)tsx?$/, input.endsWith("x") ? ".jsx" : ".$1js")}`;
}
