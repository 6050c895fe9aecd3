import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import test from "ava";
import { isInstalled } from "../../../transformer/resolve/installed";
import { packageEntry, javaScriptsOf } from "../../../transformer/resolve/package-entry";

const dirs: string[] = [];
test.after.always("remove the workspaces", async () => {
  for (const dir of dirs) await rm(dir, { recursive: true, force: true });
});

/** A workspace whose application has a package linked under that name. */
async function workspace(name: string, manifest: string): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "workspace-")));
  dirs.push(dir);
  await mkdir(join(dir, "shop"));
  await mkdir(join(dir, "app/src"), { recursive: true });
  await mkdir(dirname(join(dir, "app/node_modules", name)), { recursive: true });
  await writeFile(join(dir, "shop/package.json"), manifest);
  await symlink(join(dir, "shop"), join(dir, "app/node_modules", name));
  return dir;
}

/** Returns the file that an import resolves to, relative to the package. */
async function found(
  manifest: object | string,
  specifier = "shop",
  name = "shop",
): Promise<string | undefined> {
  const text = typeof manifest === "string" ? manifest : JSON.stringify(manifest);
  const dir = await workspace(name, text);
  const file = packageEntry(specifier, join(dir, "app/src"));
  return file === undefined ? undefined : relative(join(dir, "shop"), file);
}

const PER_SUBPATH = {
  exports: {
    ".": "./src/index.ts",
    "./*": "./dist/*.js",
    "./orders/*.ts": "./src/orders/*.ts",
    "./orders/*": "./src/orders/*/index.ts",
    "./private/*": null,
  },
};

for (const [what, manifest, specifier, expected] of [
  ["the only export", { exports: "./src/index.ts", main: "main.js" }, "shop", "src/index.ts"],
  [
    "the file for `import` before the one for `require`",
    { exports: { import: "./a.ts", require: "./a.cjs" } },
    "shop",
    "a.ts",
  ],
  [
    "the default of nested conditions",
    { exports: { node: { types: "./a.ts", default: "./a.js" } } },
    "shop",
    "a.js",
  ],
  [
    "the default if a condition is not Node's",
    { exports: { source: "./a.ts", default: "./a.js" } },
    "shop",
    "a.js",
  ],
  [
    "the first of several targets that Node accepts",
    { exports: [{ browser: "./b.ts" }, "./a.ts"] },
    "shop",
    "a.ts",
  ],
  ["the entry of a package with subpaths", PER_SUBPATH, "shop", "src/index.ts"],
  ["a subpath by a pattern", PER_SUBPATH, "shop/pay", "dist/pay.js"],
  ["a subpath by the longest pattern", PER_SUBPATH, "shop/orders/big", "src/orders/big/index.ts"],
  ["a subpath by a pattern with an ending", PER_SUBPATH, "shop/orders/big.ts", "src/orders/big.ts"],
  ["nothing for a private subpath", PER_SUBPATH, "shop/private/a", undefined],
  ["nothing for a subpath that is not exported", { exports: "./a.ts" }, "shop/b", undefined],
  ["nothing if no condition is Node's", { exports: { types: "./a.ts" } }, "shop", undefined],
  ["the main file without exports", { main: "src/main.ts" }, "shop", "src/main.ts"],
  ["index.js without a main file", {}, "shop", "index.js"],
  ["any file without exports", { main: "src/main.ts" }, "shop/src/pay.ts", "src/pay.ts"],
  ["index.js if package.json is not JSON", "{", "shop", "index.js"],
  ["nothing if the package does not exist", {}, "ship", undefined],
  ["nothing for a path", {}, "./shop", undefined],
  ["nothing for a module of Node", {}, "node:fs", undefined],
  ["nothing for an import within the package", {}, "#shop", undefined],
] as const) {
  test(`an import of a linked package resolves to ${what}`, async (t) => {
    t.is(await found(manifest, specifier), expected);
  });
}

test("an import of a linked package with a scope resolves", async (t) => {
  t.is(await found({ exports: { "./pay": "./pay.ts" } }, "@acme/shop/pay", "@acme/shop"), "pay.ts");
});

test("an import of an installed package resolves like that of a linked one, and is known as installed", async (t) => {
  const dir = await workspace("shop", "{}");
  await mkdir(join(dir, "app/node_modules/orders"));
  await writeFile(join(dir, "app/node_modules/orders/package.json"), `{ "exports": "./index.ts" }`);
  const file = packageEntry("orders", join(dir, "app/src")) ?? "";
  t.is(file, join(dir, "app/node_modules/orders/index.ts"));
  t.true(isInstalled(file));
  t.false(isInstalled(packageEntry("shop", join(dir, "app/src")) ?? ""));
});

test("JavaScript with the name of a source may be its output, in any folder but node_modules", async (t) => {
  const dir = await workspace("shop", "{}");
  const dist = join(dir, "shop/dist");
  const of = (source: string): string[] =>
    javaScriptsOf(source, join(dist, "index.js"))
      .map((file) => relative(dist, file))
      .toSorted();
  t.deepEqual(of("src/pay.ts"), []);
  await mkdir(join(dist, "orders/node_modules"), { recursive: true });
  for (const file of ["pay.js", "view.js", "old.cjs", "orders/ship.mjs", "orders/node_modules/pay.js"]) {
    await writeFile(join(dist, file), "");
  }
  t.deepEqual(of("src/pay.ts"), ["pay.js"]);
  t.deepEqual(of("src/view.tsx"), ["view.js"]);
  t.deepEqual(of("src/old.cts"), ["old.cjs"]);
  t.deepEqual(of("src/orders/ship.mts"), ["orders/ship.mjs"]);
  await writeFile(join(dist, "orders/view.js"), "");
  t.deepEqual(of("src/view.tsx"), ["orders/view.js", "view.js"]);
});

test("any JavaScript may be the output of a source if none has its name, and the entry comes first", async (t) => {
  const dir = await workspace("shop", "{}");
  const dist = join(dir, "shop/dist");
  await mkdir(dist);
  for (const file of ["chunk.js", "index.js", "index.d.ts"]) await writeFile(join(dist, file), "");
  const files = javaScriptsOf("src/pay.ts", join(dist, "index.js"));
  t.deepEqual(
    files.map((file) => relative(dist, file)),
    ["index.js", "chunk.js"],
  );
});
