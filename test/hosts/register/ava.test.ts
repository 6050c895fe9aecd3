import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { PACKAGE } from "../project";
import { isMatrix } from "./nodes";
import { makeHosted, orders } from "./project";

/** Where ava runs other tests than these, it must not take itself for a worker of theirs. */
(isMatrix ? test.serial : test.skip)(
  "ava runs tests of woven code, as its section in the docs says",
  async (t) => {
    const docs = await readFile(join(PACKAGE, "docs/hosts.md"), "utf8");
    const [, section = ""] = /^## ava\n(.*?)^## /ms.exec(docs) ?? [];
    const [commonjs, esm] = [...section.matchAll(/^```json\n(.*?)^```/gms)].map(
      ([, json = ""]) => JSON.parse(json) as object,
    );
    const unitTest = (extension: string): string => `import test from "ava";
import { assertWoven, testLocks } from "lockweave/testing";
import { Orders } from "./orders${extension}";

const locks = testLocks();
test("an order is paid under its lock", async (t) => {
  assertWoven(Orders.prototype.pay);
  await new Orders().pay("A1");
  t.deepEqual(locks.taken, ["LOCK_pay_A1"]);
});
`;
    for (const [type, ava, extension] of [
      ["commonjs", commonjs, ""],
      ["module", esm, ".js"],
    ] as const) {
      const project = await makeHosted({
        "package.json": JSON.stringify({ type, ...ava }),
        "orders.ts": orders("pay"),
        "orders.test.ts": unitTest(extension),
      });
      await symlink(join(PACKAGE, "node_modules/ava"), project.path("node_modules/ava"));
      const { code, stdout, stderr } = await project.run("node_modules/ava/entrypoints/cli.mjs");
      t.is(code, 0, stdout + stderr);
      t.true(stdout.includes("1 test passed"), stdout);
    }
  },
);
