import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pack, temporaryDirectory } from "./consumer";
import { inMatrix } from "../support/suites";

const execute = promisify(execFile);

inMatrix("a production install leaves out the compiler that the application builds with", async (t) => {
  const { tarball } = await pack();
  const dir = await temporaryDirectory();
  const manifest = {
    name: "application",
    private: true,
    dependencies: { lockweave: `file:${tarball}` },
    devDependencies: { typescript: "6.0.3", "ts-patch": "3.3.0" },
  };
  await writeFile(join(dir, "package.json"), JSON.stringify(manifest));
  await execute("npm", ["install", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"], {
    cwd: dir,
  });
  const installed = readdirSync(join(dir, "node_modules")).filter((name) => !name.startsWith("."));
  t.deepEqual(installed.toSorted(), ["lockweave", "uuid"]);
  const script =
    'import { configure, memoryStore, withLock } from "lockweave"; configure({ store: memoryStore(), woven: false }); console.log(await withLock("k", {}, () => "locked"));';
  const { stdout } = await execute(process.execPath, ["--input-type=module", "--eval", script], { cwd: dir });
  t.is(stdout, "locked\n");
});
