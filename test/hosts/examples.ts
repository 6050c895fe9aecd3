import { readFileSync } from "node:fs";
import { join } from "node:path";
import { story } from "../support/story";
import { PACKAGE, Project, type Files } from "./project";

// The two examples that do the same wherever they were woven.

const ENTRIES = { "order-controller": "main.mjs", reentrant: "reentrant.cjs" } as const;

export type Example = keyof typeof ENTRIES;

export const EXAMPLES = Object.keys(ENTRIES) as Example[];

/**
 * Their sources, where hosts find them that know neither `.mts` nor that `.mjs` stands for it.
 *
 * @param extension of the files
 * @param imported the extension by which one takes in another
 */
export function exampleFiles(extension: string, imported: string): Files {
  const files = ["order-controller/main", "order-controller/order-controller", "order-controller/server"];
  const sources = [...files.map((file) => `${file}.mts`), "reentrant/reentrant.cts"].map((file) => {
    const text = readFileSync(join(PACKAGE, "examples", file), "utf8");
    return [file.replace(/\.[mc]ts$/, `.${extension}`), text.replaceAll('.mjs"', `.${imported}"`)];
  });
  return Object.fromEntries(sources) as Files;
}

/** What it does when tspc has compiled it, as the repository has it. */
export async function storyOf(example: Example): Promise<string[]> {
  return await (stories[example] ??= play(example));
}

const stories: Partial<Record<Example, Promise<string[]>>> = {};

async function play(example: Example): Promise<string[]> {
  const examples = new Project(join(PACKAGE, "examples"));
  const { stdout } = await examples.run(join(example, ENTRIES[example]));
  if (stdout.length < 100) throw new Error(`${example} tells nothing`);
  return linesOf(stdout);
}

/** In any order, in which two runs differ. */
export function linesOf(output: string): string[] {
  return story(output).toSorted();
}
