import { cp, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { makeProject, PACKAGE } from "../hosts/project";

test("a function of a second copy of the package fails with the paths of both copies and the fix", async (t) => {
  const project = await makeProject({
    "main.mjs": `import { configure, memoryStore } from "lockweave";
import { pay } from "shop";
configure({ store: memoryStore(), woven: false });
await pay().catch((error) => console.log(error.code, error.message));
`,
    "node_modules/shop/package.json": JSON.stringify({ name: "shop", type: "module", exports: "./index.js" }),
    "node_modules/shop/index.js": `import { withLock } from "lockweave";
export const pay = async () => withLock("pay", {}, () => "paid");
`,
  });
  const copy = project.path("node_modules/shop/node_modules/lockweave");
  for (const part of ["package.json", "dist/runtime"]) {
    await cp(join(PACKAGE, part), join(copy, part), { recursive: true });
  }
  await symlink(join(PACKAGE, "node_modules/uuid"), project.path("node_modules/uuid"));
  const { stdout, stderr } = await project.run("main.mjs");
  t.is(stderr, "");
  t.regex(stdout, /^LOCK_MISCONFIGURED .*several copies of lockweave\. /);
  const [, configured = "", other = ""] = /Configured is (.*), but not (.*), which/.exec(stdout) ?? [];
  t.true(configured.startsWith(join(PACKAGE, "dist/runtime")), stdout);
  t.true(other.startsWith(join(copy, "dist/runtime")), stdout);
  t.regex(stdout, /names lockweave under "peerDependencies"/);
  await project.write({
    "main.mjs": 'import { pay } from "shop";\nawait pay().catch(({ message }) => console.log(message));\n',
  });
  t.regex(
    (await project.run("main.mjs")).stdout,
    /No lock store is configured\. When the application starts/,
  );
});
