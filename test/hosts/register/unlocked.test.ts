import { mkdir, rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import lockweave = require("../../../transformer/hosts/bundlers/esbuild");
import type { Project } from "../project";
import { HOSTS, makeHosted, ordersAsScript, withoutTypes } from "./project";
import { inMatrix, outsideMatrix } from "../../support/suites";

const DECLARATIONS = `export declare class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  pay(orderNo: string): Promise<string>;
}
`;
const UNLOCKED = "exports.Orders = class Orders { async pay(orderNo) { return orderNo; } };\n";
const MAIN = `const { configure, memoryStore } = require("lockweave");
configure({ store: memoryStore() });
const { Orders } = require(process.argv[2]);
new Orders().pay("A1").then(console.log);
`;

async function withPackage(javaScript: string): Promise<Project> {
  const project = await makeHosted({ "package.json": "{}", "main.js": MAIN });
  await mkdir(project.path("node_modules/orders"));
  await project.write({
    "node_modules/orders/index.js": javaScript,
    "node_modules/orders/index.d.ts": DECLARATIONS,
    "built/index.js": javaScript,
    "built/index.d.ts": DECLARATIONS,
  });
  return project;
}

const REFUSED =
  "index.js: error LW1403: This imports `Orders.pay` with `@redisLock`, but `index.js` does not contain the lock";

for (const [what, path, where] of [
  ["an installed package", "orders", "node_modules/orders/"],
  ["a library of the same repository", "./built/index.js", "built/"],
] as const) {
  outsideMatrix(
    `${what} with tags in its declarations is an error if its JavaScript has no locks`,
    async (t) => {
      const project = await withPackage(UNLOCKED);
      t.is((await project.run("main.js", path)).code, 1); // Fails at `configure()`.
      const { code, stdout, stderr } = await project.run(...HOSTS.Node, "main.js", path);
      t.like({ code, stdout }, { code: 1, stdout: "" });
      t.true(stderr.includes(where + REFUSED), stderr);
    },
  );
}

inMatrix("an installed package with tags in its JavaScript is an error and is not woven", async (t) => {
  const project = await withPackage(withoutTypes(ordersAsScript("pay")));
  const { code, stderr } = await project.run(...HOSTS.Node, "main.js", "orders");
  t.is(code, 1);
  t.true(stderr.includes(`node_modules/orders/${REFUSED}`), stderr);
});

inMatrix("an installed package that was woven runs under its locks", async (t) => {
  const source = `import { currentLock } from "lockweave";
export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> { return orderNo + " under " + currentLock().key; }
}
`;
  const project = await withPackage("");
  await project.write({ "src/index.cts": source });
  t.is((await project.tspc()).code, 0);
  await project.write({ "node_modules/orders/index.js": await project.read("out/index.cjs") });
  const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js", "orders");
  t.is(stdout, "A1 under LOCK_pay_A1\n", stderr);
});

const SOURCE = `export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> { return orderNo; }
}
`;

inMatrix(
  "an installed package that exports TypeScript with tags is an error, since tsx would run it unlocked",
  async (t) => {
    const project = await makeHosted({
      "package.json": "{}",
      "main.js": MAIN,
      "node_modules/orders/package.json": '{ "name": "orders", "main": "./index.ts" }',
      "node_modules/orders/index.ts": SOURCE,
      "node_modules/others/index.ts": "exports.Orders = class { async pay() { return 'paid'; } };",
      "node_modules/others/package.json": '{ "name": "others", "main": "./index.ts" }',
    });
    const { code, stdout, stderr } = await project.run(...HOSTS.tsx, "main.js", "orders");
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.true(stderr.includes(`node_modules/orders/${REFUSED.replaceAll("index.js", "index.ts")}`), stderr);
    t.like(await project.run(...HOSTS.tsx, "main.js", "others"), { code: 0, stdout: "paid\n" });
  },
);

const APPLICATION = `import { configure, memoryStore } from "lockweave";
import { Orders } from "./orders.cjs";
configure({ store: memoryStore() });
void new Orders().pay("A1").then(console.log);
`;
const WITHOUT_COMMENTS = { removeComments: true, sourceMap: true, types: ["node"] };

inMatrix(
  "an application built without the weave and without comments is an error, found by its source maps",
  async (t) => {
    const project = await makeHosted(
      { "src/orders.cts": SOURCE, "src/main.cts": APPLICATION },
      WITHOUT_COMMENTS,
    );
    t.is((await project.tsc()).code, 0);
    t.notRegex(await project.read("out/orders.cjs"), /redisLock/);
    const { code, stdout, stderr } = await project.run(...HOSTS.Node, "out/main.cjs");
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.true(stderr.includes("out/orders.cjs: error LW1403: `orders.cjs` does not contain the lock"), stderr);
    t.is((await project.tspc()).code, 0);
    t.like(await project.run(...HOSTS.Node, "out/main.cjs"), { code: 0, stdout: "A1\n" });
  },
);

/** Ways to reference the source map in `pay order.js`, by the text of the map. */
const MAPS: Readonly<Record<string, (map: string, directory: string) => string>> = {
  "an external map": () => "//# sourceMappingURL=pay%20order.js.map",
  "an inline map": (map) =>
    `//# sourceMappingURL=data:application/json;charset=utf-8;base64,${Buffer.from(map).toString("base64")}`,
  "a percent-encoded inline map": (map) =>
    `//# sourceMappingURL=data:application/json,${encodeURIComponent(map)}`,
  "a `file:` URL": (_, directory) =>
    `//# sourceMappingURL=${pathToFileURL(`${directory}/pay order.js.map`).href}`,
  "a comment of the old kind": () => "//@ sourceMappingURL=pay%20order.js.map",
  "a block comment": () => "/*# sourceMappingURL=pay%20order.js.map */",
  "a comment behind code": () => "void 0; //# sourceMappingURL=pay%20order.js.map",
  "a comment before others": () =>
    "//# sourceMappingURL=pay%20order.js.map\n/* for a debugger */\n//# debugId=1\n",
};

const REFUSALS = `for (const file of process.argv.slice(2)) {
  try { require(file); console.log("ran"); } catch ({ message }) { console.log(message); }
}
`;

inMatrix(
  "JavaScript without the locks of its source is an error, however it names its map and its source",
  async (t) => {
    const project = await makeHosted({
      "package.json": "{}",
      "main.js": REFUSALS,
      "src/pay order.ts": SOURCE,
    });
    const source = pathToFileURL(project.path("src")).href;
    const maps = [
      { sources: ["../../src/pay%20order.ts"] },
      { sourceRoot: "../../src", sources: ["pay order.ts"] },
      { sourceRoot: source, sources: ["pay%20order.ts"] },
      { sourceRoot: null, sources: [`${source}/pay%20order.ts`] },
    ].map((map) => JSON.stringify({ version: 3, ...map, names: [], mappings: "" }));
    const files: string[] = [];
    for (const commentOf of Object.values(MAPS)) {
      for (const map of maps) {
        const directory = `built/${files.length}`;
        await project.write({
          [`${directory}/pay order.js`]: `${UNLOCKED}${commentOf(map, project.path(directory))}`,
          [`${directory}/pay order.js.map`]: map,
        });
        files.push(`./${directory}/pay order.js`);
      }
    }
    const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js", ...files);
    const refused = files.map((file) => `${file.slice(2)}: error LW1403`);
    t.is(stdout.replaceAll(/(?<=LW1403).*/g, ""), `${refused.join("\n")}\n`, stderr);
  },
);

inMatrix("JavaScript runs if its source map points to no file or names no source", async (t) => {
  const project = await makeHosted({ "package.json": "{}", "main.js": REFUSALS, "src/pay.ts": SOURCE });
  const comments = [
    "//# sourceMappingURL=https://example.com/src/pay.js.map",
    "//# sourceMappingURL=data:application/json,%",
    "//# sourceMappingURL=data:application/json,null",
    `//# sourceMappingURL=data:application/json,{"sources":["webpack:///src/pay.ts",null]}`,
    `//# sourceMappingURL=data:application/json,{"sourceRoot":"https://example.com","sources":["src/pay.ts"]}`,
    `//# sourceMappingURL=data:application/json,{"sources":["src/pay.ts"]}\nvoid 0;`,
  ];
  const files = comments.map((comment, index) => [`${index}.js`, UNLOCKED + comment] as const);
  await project.write(Object.fromEntries(files));
  const names = files.map(([name]) => `./${name}`);
  const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js", ...names);
  t.is(stdout, "ran\n".repeat(names.length), stderr);
});

/** Builds `src/main.ts` without comments. The bundle calls the tagged function only if it is `used`. */
async function bundled(used: boolean, plugins: Plugin[] = []): Promise<Project> {
  const project = await makeHosted({
    "package.json": "{}",
    "src/orders.cts": `${SOURCE}export const format = (price: number): string => price.toFixed(2);\n`,
    "src/main.cts": used ? APPLICATION : APPLICATION.replace("Orders }", "format }").replace(/void .*/, CALL),
  });
  await build({
    entryPoints: [project.path("src/main.cts")],
    bundle: true,
    platform: "node",
    packages: "external",
    sourcemap: true,
    minifyWhitespace: true, // Removes the comments.
    outfile: project.path("dist/main.js"),
    plugins,
  });
  return project;
}

const CALL = "console.log(format(2));";

inMatrix(
  "a bundle that contains a tagged function without its lock is an error, found by its source map",
  async (t) => {
    const project = await bundled(true);
    t.notRegex(await project.read("dist/main.js"), /redisLock/);
    const refused = async (): Promise<void> => {
      const { code, stdout, stderr } = await project.run(...HOSTS.Node, "dist/main.js");
      t.like({ code, stdout }, { code: 1, stdout: "" });
      t.regex(
        stderr,
        /dist\/main\.js: error LW1403: `main\.js` does not contain the lock of `Orders\.pay` with `@redisLock`, but/,
      );
    };
    await refused();
    await rm(project.path("src"), { recursive: true }); // As in an image for production.
    await refused();
  },
);

inMatrix("a bundle runs if it has the lock, or if the bundler left the tagged function out", async (t) => {
  const woven = await bundled(true, [lockweave()]);
  t.like(await woven.run(...HOSTS.Node, "dist/main.js"), { code: 0, stdout: "A1\n" });
  const shaken = await bundled(false);
  t.like(await shaken.run(...HOSTS.Node, "dist/main.js"), { code: 0, stdout: "2.00\n" });
});

inMatrix(
  "a bundle whose source map has no positions runs if it certainly has no tagged function of its source",
  async (t) => {
    const source = `export async function format(): Promise<void> {}
export const items = [].map(() => 1);
/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {}
`;
    const map = JSON.stringify({
      version: 3,
      sources: ["../src/pay.ts"],
      sourcesContent: [source],
      mappings: "",
    });
    const bundles = {
      "without-functions.js": "exports.rate = 2;",
      "with-another.js": "exports.format = async function format() {};",
      "with-its-own.js": "exports.format = async function format() {}; exports.pay = async () => {};",
      "renamed.js": "exports.format = async function format() {}; exports.pay = a; async function a() {}",
      "renamed-inside.js": "exports.run = () => { void a(); }; async function a() {}",
      "inlined.js": "exports.run = [1].map(async () => {});",
    };
    const project = await makeHosted({
      "package.json": "{}",
      "main.js": REFUSALS,
      "bundle.js.map": map,
      ...Object.fromEntries(
        Object.entries(bundles).map(([file, code]) => [file, `${code}\n//# sourceMappingURL=bundle.js.map`]),
      ),
    });
    const files = Object.keys(bundles).map((file) => `./${file}`);
    const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js", ...files);
    const refused = ["with-its-own.js", "renamed.js", "renamed-inside.js", "inlined.js"].map(
      (file) => `${file}: error LW1403\n`,
    );
    t.is(stdout.replaceAll(/(?<=LW1403).*/g, ""), `ran\nran\n${refused.join("")}`, stderr);
  },
);

inMatrix(
  "JavaScript without the locks of its source is an error if only its source map contains the source",
  async (t) => {
    const mapOf = (text: string): string =>
      JSON.stringify({
        version: 3,
        sources: ["../src/pay.ts"],
        sourcesContent: [text],
        names: [],
        mappings: "",
      });
    const project = await makeHosted({
      "package.json": "{}",
      "main.js": REFUSALS,
      "tagged.js": `${UNLOCKED}//# sourceMappingURL=tagged.js.map`,
      "tagged.js.map": mapOf(SOURCE),
      "plain.js": `${UNLOCKED}//# sourceMappingURL=plain.js.map`,
      "plain.js.map": mapOf(SOURCE.replace("@redisLock", "")),
    });
    const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js", "./tagged.js", "./plain.js");
    t.is(stdout.replaceAll(/(?<=LW1403).*/g, ""), "tagged.js: error LW1403\nran\n", stderr);
  },
);

/** The output directory, the source directory, and a file in both, by the layout of a project. */
const LAYOUTS: Readonly<
  Record<string, readonly [config: object | undefined, source: string, output: string]>
> = {
  "a source directory": [{ outDir: "build", rootDir: "source" }, "source/pay.ts", "build/pay.js"],
  "the directory `src`": [{ outDir: "./dist" }, "src/a/pay.ts", "dist/a/pay.js"],
  "the usual directories": [{}, "src/pay.mts", "dist/pay.mjs"],
  "several applications": [{ outDir: "dist" }, "apps/shop/src/pay.tsx", "dist/apps/shop/src/pay.js"],
};

for (const [layout, [compilerOptions, source, output]] of Object.entries(LAYOUTS)) {
  inMatrix(
    `JavaScript without a source map and without the locks of its source is an error: ${layout}`,
    async (t) => {
      const unlocked = output.endsWith(".mjs")
        ? UNLOCKED.replace("exports.Orders =", "export const Orders =")
        : UNLOCKED;
      const project = await makeHosted({
        "package.json": "{}",
        "tsconfig.json": JSON.stringify({ compilerOptions }),
        "main.mjs": `for (const file of process.argv.slice(2))
        await import(file).then(() => console.log("ran"), ({ message }) => console.log(message));`,
        [source]: SOURCE,
        [output]: unlocked,
        [output.replace("pay", "other")]: unlocked,
        [`elsewhere/${output}`]: unlocked,
      });
      const files = [output, output.replace("pay", "other"), `elsewhere/${output}`].map(
        (file) => `./${file}`,
      );
      const { stdout, stderr } = await project.run(...HOSTS.Node, "main.mjs", ...files);
      t.is(stdout.replaceAll(/(?<=LW1403).*/g, ""), `${output}: error LW1403\nran\nran\n`, stderr);
    },
  );
}

inMatrix("a bundle without a source map runs without the functions that it leaves out", async (t) => {
  const project = await makeHosted({
    "package.json": "{}",
    "tsconfig.json": "{}",
    "src/main.ts": SOURCE,
    "dist/main.js": "console.log('runs');\n",
  });
  t.like(await project.run(...HOSTS.Node, "dist/main.js"), { code: 0, stdout: "runs\n" });
});

inMatrix("JavaScript runs next to a tsconfig.json that extends a missing package", async (t) => {
  const project = await makeHosted({
    "package.json": "{}",
    "tsconfig.json": '{ "extends": "@missing/tsconfig" }',
    "dist/main.js": "console.log('runs');\n",
  });
  t.like(await project.run(...HOSTS.Node, "dist/main.js"), { code: 0, stdout: "runs\n" });
});
