import packageJson from "../../package.json";
import { bundle, BUNDLERS, projectOf, runBundle } from "../hosts/bundlers/bundlers";
import { recipe } from "../hosts/bundlers/recipes";
import { lockweave } from "./command";
import { inMatrix } from "../support/suites";

// Builds and runs what `lockweave init` has set up, with bundlers that are too slow for every run of the tests.

const MAIN = `import { configure, currentLock, memoryStore } from "lockweave";

/** @redisLock businessFlag=pay keyName=orderNo */
async function pay(orderNo: string): Promise<string> {
  return orderNo + " under " + currentLock().key;
}
configure({ store: memoryStore() });
void pay("A1").then((paid) => console.log(paid));
`;

/** The command of each bundler in a script. */
const SCRIPTS = { webpack: "webpack", Rspack: "rspack build", tsup: "tsup", tsdown: "tsdown" };

for (const [name, build] of Object.entries(SCRIPTS)) {
  inMatrix(
    `the output of ${name} reports LOCK_NOT_WOVEN before init, and runs under its lock after init`,
    async (t) => {
      t.timeout(300_000);
      const bundler = BUNDLERS.find((one) => one.name === name);
      if (bundler === undefined) throw new Error(`there is no bundler ${name}`);
      const { file, text } = recipe(name);
      const plain = text
        .replace(/^import lockweave.*\n/m, "")
        .replace(/^ *\w*plugins: \[lockweave\(\)\],\n/im, "");
      t.notRegex(plain, /lockweave\(|from "lockweave/);
      const dependencies = { lockweave: packageJson.version, ioredis: "*", [name.toLowerCase()]: "*" };
      const project = await projectOf(bundler, {
        "package.json": JSON.stringify({ type: "module", scripts: { build }, dependencies }),
        "src/main.ts": MAIN,
      });
      await project.write({ [file]: plain });
      t.like(await bundle(project, bundler), { code: 0 });
      t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);

      const set = await lockweave(project, "init", "--yes");
      t.is(set.code, 0, set.stdout + set.stderr);
      t.regex(set.stdout, /\nNext\n/);
      const built = await bundle(project, bundler);
      t.is(built.code, 0, built.stdout + built.stderr);
      const { stdout, stderr } = await runBundle(project);
      t.is(stdout, "A1 under LOCK_pay_A1\n", stderr);
    },
  );
}
