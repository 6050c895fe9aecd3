import test from "ava";
import { makeProject, PLUGIN, tsconfig, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { forbiddenIn, hostileTexts, hostileWord } from "./hostile";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

// The commands print text from hostile sources without the characters that control a terminal.

/** Words that end neither a comment nor a string. */
const WORDS = hostileTexts(12, hostileWord).map((word) => word.replaceAll(/["'`\\$*@{}]/g, ""));
const FLAGS = WORDS.map((word) => `flag${word}`);

/** Functions with valid tags. */
const RIGHT = FLAGS.map(
  (flag, index) => `export const right${index} = {
  /** @redisLock businessFlag=f${index} keyName=id */
  async "${flag}"(id: string): Promise<string> { return id + "${flag}"; },
};
`,
).join("");

/** Invalid tags and type errors. */
const WRONG = FLAGS.map(
  (flag, index) => `/** @redisLock businessFlag="${flag}" ${flag}=1 keyName=${flag} when="id !== '${flag}'" */
export async function wrong${index}(id: string): Promise<string> { return id; }
export const type${index}: "${flag}" = "other${flag}";
`,
).join("");

async function projectOf(source: string): Promise<Project> {
  const names = FLAGS.slice(0, 3).map((flag) => [`src/${flag}.ts`, RIGHT.replaceAll("right", "again")]);
  return await makeProject({
    ...(Object.fromEntries(names) as Record<string, string>),
    "src/source.ts": source,
    "package.json": JSON.stringify({
      type: "module",
      name: FLAGS[0],
      scripts: Object.fromEntries(FLAGS.map((flag) => [flag, `tsc ${flag}`])),
      devDependencies: { typescript: `${FLAGS[1] ?? ""}5.1` },
    }),
  });
}

async function printsNothingHostile(
  project: Project,
  commands: readonly (readonly string[])[],
): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const args of commands) {
    const { code, stdout, stderr } = await lockweave(project, ...args);
    const found = forbiddenIn(stdout + stderr);
    if (found.length > 0) wrong.push(`${args.join(" ")}: ${found.join()}`);
    if ((stdout + stderr === "" && code !== 0) || code === null)
      wrong.push(`${args.join(" ")} prints nothing`);
    if (args.includes("--json")) JSON.parse(stdout);
  }
  return wrong;
}

inMatrix("commands print no terminal control characters from sources with locks", async (t) => {
  const project = await projectOf(RIGHT);
  const commands = [
    ["list"],
    ["list", "--json"],
    ["diff"],
    ["check"],
    ["check", "--json"],
    ["build"],
    ["eject"],
  ];
  t.deepEqual(await printsNothingHostile(project, commands), []);
  const { stdout } = await lockweave(project, "list", "--json");
  const { tags } = JSON.parse(stdout) as { tags: { function: string }[] };
  const missing = FLAGS.filter((flag) => !tags.some(({ function: name }) => name.endsWith(flag)));
  t.deepEqual(missing, []);
});

inMatrix("commands print no terminal control characters from sources with errors", async (t) => {
  const project = await projectOf(WRONG);
  const commands = [
    ["list"],
    ["list", "--json"],
    ["diff"],
    ["check"],
    ["check", "--json"],
    ["build"],
    ["eject"],
  ];
  t.deepEqual(await printsNothingHostile(project, commands), []);
});

inMatrix(
  "commands print no terminal control characters from the names of files, options, and packages",
  async (t) => {
    const project = await projectOf(RIGHT);
    const [word = ""] = FLAGS;
    const commands = [
      ["init"],
      ["list", "-p", word],
      ["check", "--output", word],
      ["diff", word],
      [word],
      ["list", `--${word}`],
      ["list", word],
    ];
    t.deepEqual(await printsNothingHostile(project, commands), []);
    await project.write({ "tsconfig.json": tsconfig({ plugins: [{ ...PLUGIN, [word]: 1 } as never] }) });
    t.deepEqual(await printsNothingHostile(project, [["list"], ["check"]]), []);
    await project.write({ "tsconfig.json": `{ "compilerOptions": { "${word}": true } }` });
    t.deepEqual(await printsNothingHostile(project, [["list"], ["check"], ["init"], ["build"]]), []);
  },
);
