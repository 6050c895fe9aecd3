import { mkdir } from "node:fs/promises";
import test from "ava";
import {
  assertRunByYarn,
  commandLine,
  packageManagerFor,
} from "../../transformer/cli/workspace/package-manager";
import { UsageError } from "../../transformer/terminal/usage-error";
import { makeProject, type Files } from "../hosts/project";

/** Creates the directory `packages/shop` in a workspace. Returns its path. */
async function inWorkspace(files: Files): Promise<string> {
  const project = await makeProject(files);
  const dir = project.path("packages/shop");
  await mkdir(dir, { recursive: true });
  return dir;
}

for (const [files, command] of [
  [{ "package-lock.json": "{}" }, "npx lockweave check"],
  [{ "pnpm-lock.yaml": "" }, "pnpm exec lockweave check"],
  [{ "yarn.lock": "" }, "yarn lockweave check"],
  [{ "bun.lock": "" }, "bunx lockweave check"],
  [{ "package.json": '{ "packageManager": "pnpm@10.0.0" }', "yarn.lock": "" }, "pnpm exec lockweave check"],
  [{ "yarn.lock": "", "packages/shop/bun.lockb": "" }, "bunx lockweave check"],
  [{ "yarn.lock": "", "packages/shop/package.json": "[" }, "yarn lockweave check"],
] as const) {
  test(`messages name \`${command}\` for ${JSON.stringify(files)}`, async (t) => {
    t.is(commandLine(await inWorkspace(files), "lockweave", "check"), command);
  });
}

test("npm is the package manager of a project without a lock file", async (t) => {
  t.is(packageManagerFor(await inWorkspace({})).name, "npm");
});

test("a command in a project with Yarn Plug'n'Play must be run by Yarn", async (t) => {
  const pnp = { "yarn.lock": "", ".pnp.cjs": "" };
  const manifest = (dependencies: object): Files => ({
    "packages/shop/package.json": JSON.stringify(dependencies),
  });
  const runIn = async (files: Files): Promise<string | undefined> => {
    const dir = await inWorkspace(files);
    try {
      assertRunByYarn(dir, ["check", "-p", "."]);
      return undefined;
    } catch (error) {
      t.true(error instanceof UsageError);
      return (error as Error).message.replace(/^.*Fix: /, "");
    }
  };
  t.is(await runIn({ "yarn.lock": "" }), undefined);
  t.is(await runIn({ ...pnp, "packages/shop/package-lock.json": "{}" }), undefined);
  t.is(
    await runIn({ ...pnp, ...manifest({ devDependencies: { lockweave: "*" } }) }),
    "run `yarn lockweave check -p .`.",
  );
  t.is(
    await runIn({ ...pnp, ...manifest({}) }),
    "run `yarn add lockweave ioredis`, and then `yarn lockweave check -p .`.",
  );
});
