import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { PACKAGE, type Files, type Project } from "../hosts/project";
import { outsideMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

async function consumerWith(packages: readonly string[], files: Files): Promise<Project> {
  const project = await makeConsumer(files);
  for (const name of packages)
    await symlink(join(PACKAGE, "node_modules", name), project.path(`node_modules/${name}`));
  return project;
}

/** As browsers have them, and jsdom. */
const TIMERS_OF_BROWSERS = `const { setTimeout, clearTimeout } = globalThis;
const timers = new Map();
let last = 0;
globalThis.setTimeout = (run, delay, ...args) => {
  timers.set(++last, setTimeout(run, delay, ...args));
  return last;
};
globalThis.clearTimeout = (timer) => clearTimeout(timers.get(timer));
delete globalThis.setImmediate;
`;

outsideMatrixSerially("locks work with timers that are numbers, as those of jsdom are", async (t) => {
  const project = await consumerWith(["ioredis"], {
    "timers.cjs": TIMERS_OF_BROWSERS,
    "main.cjs": `const { configure, memoryStore, shutdown, withLock } = require("lockweave");
(async () => {
  configure({ store: memoryStore(), woven: false });
  const body = () => new Promise((resolve) => setTimeout(resolve, 5, "locked"));
  console.log(await Promise.all([withLock("k", {}, body), withLock("k", {}, body)]));
  await shutdown();
  configure({ redis: "redis://127.0.0.1:1", woven: false, commandTimeout: "200ms", logger: { warn() {} } });
  await withLock("k", { retryTimes: 0 }, body).catch(({ code }) => console.log(code));
  await shutdown();
  process.exit(); // Such timers keep a process alive.
})();
`,
  });
  t.like(await project.run("--require", "./timers.cjs", "main.cjs"), {
    code: 0,
    stdout: "[ 'locked', 'locked' ]\nLOCK_UNREACHABLE\n",
    stderr: "",
  });
});
