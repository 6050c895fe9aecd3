import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import packageJson from "../../package.json";
import { makeProject, PACKAGE, type Project } from "../hosts/project";

const { version } = packageJson;
const OTHER = "99.1.2";

/** Creates an application and a library `shop` with its own copy of this package. Both use ES modules, or both CommonJS. */
async function withTwoCopies(main: string, { of, build }: { of: string; build: string }): Promise<Project> {
  const isModule = build === "an ES module";
  const load = (names: string, from: string): string =>
    isModule ? `import { ${names} } from "${from}";\n` : `const { ${names} } = require("${from}");\n`;
  const project = await makeProject({
    "package.json": JSON.stringify({ type: isModule ? "module" : "commonjs" }),
    "main.js": load("configure, memoryStore, LockError, shutdown", "lockweave") + main,
    "node_modules/shop/package.json": JSON.stringify({
      name: "shop",
      type: isModule ? "module" : "commonjs",
      exports: "./index.js",
    }),
    "node_modules/shop/index.js": `${load("withLock, LockOptionError", "lockweave")}
const pay = (options = {}) => withLock("pay", options, () => "paid");
${isModule ? "export { pay, LockOptionError };" : "module.exports = { pay, LockOptionError };"}
`,
  });
  const copy = project.path("node_modules/shop/node_modules/lockweave");
  for (const part of ["package.json", "dist/runtime"]) {
    await cp(join(PACKAGE, part), join(copy, part), { recursive: true });
  }
  for (const file of ["runtime.js", "runtime.mjs"]) {
    const path = join(copy, "dist/runtime", file);
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(`VERSION = "${version}"`, `VERSION = "${of}"`));
  }
  await symlink(join(PACKAGE, "node_modules/uuid"), project.path("node_modules/uuid"));
  return project;
}

for (const build of ["an ES module", "CommonJS"]) {
  const shop = build === "an ES module" ? `await import("shop")` : `require("shop")`;

  test(`two copies of one version share their configuration and classes: ${build}`, async (t) => {
    const project = await withTwoCopies(
      `
void (async () => {
  const { pay, LockOptionError } = ${shop};
  configure({ store: memoryStore(), woven: false });
  console.log(await pay());
  await pay({ lockTime: "never" }).catch((error) => console.log(error instanceof LockError, error instanceof LockOptionError));
})();
`,
      { of: version, build },
    );
    t.like(await project.run("main.js"), { code: 0, stdout: "paid\ntrue true\n", stderr: "" });
  });

  test(`configure() reports both loaded versions with their paths and the fix: ${build}`, async (t) => {
    const project = await withTwoCopies(
      `
void (async () => {
  const { pay } = ${shop};
  try { configure({ store: memoryStore(), woven: false }); } catch (error) { console.log(error.code, error.message); }
  await pay().catch((error) => console.log(error.message));
})();
`,
      { of: OTHER, build },
    );
    const { stdout, stderr } = await project.run("main.js");
    t.is(stderr, "");
    const ours = join(PACKAGE, "dist/runtime/runtime.");
    const other = project.path("node_modules/shop/node_modules/lockweave/dist/runtime/runtime.");
    const [first = "", second = ""] = stdout.split("\n");
    t.regex(first, /^LOCK_MISCONFIGURED This process has loaded several versions of lockweave: /);
    t.true(first.includes(`${version} (${ours}`), first);
    t.true(first.includes(`${OTHER} (${other}`), first);
    t.regex(first, /Fix: in each library with tags, list lockweave in "peerDependencies"/);
    t.regex(second, /No lock store is configured\. Fix: call configure/);
  });

  test(`a function of a version loaded after configure() fails with both versions and the fix: ${build}`, async (t) => {
    const project = await withTwoCopies(
      `
configure({ store: memoryStore(), woven: false });
void (async () => {
  const { pay } = ${shop};
  await pay().catch((error) => console.log(error.code, error.message));
  await shutdown();
  try { configure({ store: memoryStore(), woven: false }); } catch (error) { console.log(error.message); }
})();
`,
      { of: OTHER, build },
    );
    const { stdout, stderr } = await project.run("main.js");
    t.is(stderr, "");
    t.regex(
      stdout,
      /^LOCK_MISCONFIGURED .*several versions of lockweave\. configure\(\) was called in \S+ \(.*\), but not in 99\.1\.2 \(.*\), which the failing function imports\. Fix: /,
    );
    t.regex(stdout, /^This process has loaded several versions of lockweave: /m);
  });
}
