import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { story } from "../support/story";
import { makeProject, PACKAGE, type Files } from "./project";

// Two examples that must behave the same in each host.

const ENTRIES = { "order-controller": "main.mjs", reentrant: "reentrant.cjs" } as const;

export type Example = keyof typeof ENTRIES;

export const EXAMPLES = Object.keys(ENTRIES) as Example[];

/**
 * Returns the sources of the examples for hosts that know neither `.mts` nor that `.mjs` stands for it.
 *
 * @param extension of the files
 * @param imported the extension in import specifiers
 */
export function exampleFiles(extension: string, imported: string): Files {
  const files = ["main", "order-controller", "place", "server"].map((name) => `order-controller/${name}`);
  const sources = [...files.map((file) => `${file}.mts`), "reentrant/reentrant.cts"].map((file) => {
    const text = withShortWork(readFileSync(join(PACKAGE, "examples", file), "utf8"));
    return [file.replace(/\.[mc]ts$/, `.${extension}`), text.replaceAll('.mjs"', `.${imported}"`)];
  });
  return Object.fromEntries(sources) as Files;
}

/** The examples as modules for hosts that compile to CommonJS. They do nothing until `main()` is called. */
export const EXAMPLE_SCRIPTS: Files = Object.fromEntries(
  Object.entries(exampleFiles("ts", "js")).map(([file, text]) => [
    file,
    asScript(text).replaceAll(/(from "\.\/.*)\.js"/g, '$1"'),
  ]),
);

/** The entry file of each, without the extension. */
export const SCRIPT_ENTRIES: Readonly<Record<Example, string>> = {
  "order-controller": "order-controller/main",
  reentrant: "reentrant/reentrant",
};

/** Lets the longest work take a tenth of its time. `examples.test.ts` runs the example as it is. */
function withShortWork(text: string): string {
  return text.replaceAll(/\b6_000\b/g, "600");
}

function asScript(text: string): string {
  const [imports = "", ...body] = text.split("\n\n");
  const main = /^await /m.test(text)
    ? `${imports}\n\nasync function main(): Promise<void> {\n${body.join("\n\n")}}\n`
    : text;
  return main.replace(/^void main\(\);\n/m, "").replace(/^async function main/m, "export $&");
}

/** Returns the output of an example that tspc has compiled. Every host must reproduce it. */
export async function expectedLinesOf(example: Example): Promise<string[]> {
  return await (stories[example] ??= play(example));
}

const stories: Partial<Record<Example, Promise<string[]>>> = {};

async function play(example: Example): Promise<string[]> {
  const files = readdirSync(join(PACKAGE, "examples", example)).filter((file) => /\.[mc]js$/.test(file));
  const copied = files.map((file) => {
    const path = `${example}/${file}`;
    return [path, withShortWork(readFileSync(join(PACKAGE, "examples", path), "utf8"))] as const;
  });
  const examples = await makeProject(Object.fromEntries(copied));
  const { stdout } = await examples.run(join(example, ENTRIES[example]));
  if (stdout.length < 100) throw new Error(`${example} prints too little`);
  return linesOf(stdout);
}

/**
 * Returns a test that runs the example and writes its output to a file.
 *
 * @param extension the extension in the import of the example
 */
export function exampleTest(example: Example, runner: "ava" | "jest" | "vitest", extension = ""): string {
  const [taken, timeLimit] = {
    ava: ['import test from "ava";', ""],
    jest: ['import { test } from "@jest/globals";', ", 60_000"],
    vitest: ['import { test } from "vitest";', ", 60_000"],
  }[runner];
  return `import { writeFileSync } from "node:fs";
${taken}
import { main } from "./${SCRIPT_ENTRIES[example]}${extension}";

test("${example}", async (${runner === "ava" ? "t" : ""}) => {
  const lines: string[] = [];
  console.log = (line: string) => void lines.push(line);
  await main();
  writeFileSync("${example}.txt", lines.join("\\n"));${runner === "ava" ? "\n  t.pass();" : ""}
}${timeLimit});
`;
}

/** Returns the lines sorted, since their order differs between runs. */
export function linesOf(output: string): string[] {
  return story(output).toSorted();
}
