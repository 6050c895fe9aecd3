import type { Project, Settings } from "./project";
import { HOSTS, makeHosted } from "./register/project";
import { inMatrixSerially } from "../support/suites";

// Tags in a code block of a comment, as each reader of tags sees them.

const EXAMPLE = `/**
 * Describes how to lock a function:
 *
 * \`\`\`ts
 * @redisLock businessFlag=example keyName=id
 * \`\`\`
 */
export async function describe(id: string): Promise<string> { return id; }
`;
const LOCKED = `/**
 * Pays.
 *
 * \`\`\`ts
 * await pay("A1");
 * \`\`\`
 *
 * @redisLock businessFlag=pay keyName=id
 */
export async function pay(id: string): Promise<string> { return id; }
`;
const MAIN = `import { configure, memoryStore, shutdown } from "lockweave";
import { assertWoven } from "lockweave/testing";
import { describe, pay } from "./pay.js";
configure({ store: memoryStore() });
assertWoven(pay);
console.log(await describe("A1"), await pay("A2"));
await shutdown();
`;

async function projectWith(pay: string, settings: Settings = {}): Promise<Project> {
  return await makeHosted(
    { "src/pay.ts": pay, "src/main.ts": MAIN },
    {
      declaration: true,
      sourceMap: true,
      types: ["node"],
      ...settings,
    },
  );
}

inMatrixSerially(
  "a tag in a code block is prose for the compiler, the command line, and the hook",
  async (t) => {
    const project = await projectWith(EXAMPLE + LOCKED);
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/main.js"), { code: 0, stdout: "A1 A2\n", stderr: "" });
    const { stdout } = await project.lockweave("list", "--json");
    t.is(stdout.match(/"key"/g)?.length, 1, stdout);
    t.regex(stdout, /LOCK_pay_/);
    t.like(await project.lockweave("check", "--output", "out"), { code: 0 });
    // The hook finds no lock that is missing in built code, and weaves the source.
    t.like(await project.run(...HOSTS.Node, "out/main.js"), { code: 0, stdout: "A1 A2\n", stderr: "" });
    t.like(await project.run(...HOSTS.tsx, "src/main.ts"), { code: 0, stdout: "A1 A2\n", stderr: "" });
  },
);

inMatrixSerially("a build without the weave lacks no lock if its only tags are in code blocks", async (t) => {
  const project = await projectWith(EXAMPLE, { removeComments: true });
  await project.write({
    "src/main.ts": `import { describe } from "./pay.js";\nconsole.log(await describe("A1"));\n`,
  });
  t.is((await project.tsc()).code, 0);
  t.like(await project.run(...HOSTS.Node, "out/main.js"), { code: 0, stdout: "A1\n", stderr: "" });
  await project.write({ "src/pay.ts": LOCKED.replace("pay(id", "describe(id") });
  t.is((await project.tsc()).code, 0);
  t.regex((await project.run(...HOSTS.Node, "out/main.js")).stderr, /LW1403/);
});

inMatrixSerially(
  "a tag below a code block that is not closed is an error, and its function refuses to run",
  async (t) => {
    const project = await projectWith(EXAMPLE + LOCKED.replace("```\n *\n * @", "\n * @"));
    await project.write({ "src/main.ts": MAIN.replace("assertWoven(pay);", "") });
    const { code, stdout } = await project.tspc();
    t.is(code, 2);
    const place = await project.placeOf("@redisLock businessFlag=pay", "src/pay.ts");
    t.true(stdout.startsWith(`${place}: error TS901014: LW1014: A code block`), stdout);
    t.is(stdout.trim().split("\n").length, 1, stdout);
    const { stderr } = await project.run("out/main.js");
    t.regex(stderr, /LW1014: .*refuses to run unlocked/);
    const hooked = await project.run(...HOSTS.tsx, "src/main.ts");
    t.is(hooked.code, 1);
    t.true(hooked.stderr.includes(`${place}: error LW1014: A code block`), hooked.stderr);
  },
);
