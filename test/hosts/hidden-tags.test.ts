import { symlink } from "node:fs/promises";
import test from "ava";
import { lockweave } from "../cli/command";
import { makeProject, tsconfig, type Settings } from "./project";

// Tags that the declarations of a library do not contain. They are read from its sources, if these can be found.

const LIB =
  "/** @redisLock businessFlag=payOrder keyName=id */\nexport async function log(id: string): Promise<string> { return id; }\n";
const COMPOSITE: Settings = { composite: true, rootDir: ".", outDir: "out" };

/** A library whose declarations contain none of its tags. */
const HIDDEN = {
  "lib/index.ts":
    'import { log } from "./log.js";\nexport class Shop {\n  async run(): Promise<void> { await this.#pay("a"); await this.ship("a"); await log("a"); }\n  /** @redisLock businessFlag=payOrder keyName=id */\n  async #pay(id: string): Promise<string> { return id; }\n  /** @redisLock businessFlag=ship keyName=id */\n  private async ship(id: string): Promise<string> { return id; }\n}\n',
  "lib/log.ts": LIB,
  "app/main.ts":
    'import { configure, memoryStore } from "lockweave";\nimport { Shop } from "../lib/index.js";\nconfigure({ store: memoryStore() });\nawait new Shop().run();\n',
};

test.serial("finds tags missing from declarations in the sources of a referenced project", async (t) => {
  const library = { ...COMPOSITE, removeComments: true, outDir: "../out/lib" };
  const project = await makeProject({
    "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "app" }] }),
    "lib/tsconfig.json": tsconfig(library, {}),
    "app/tsconfig.json": tsconfig(COMPOSITE, { references: [{ path: "../lib" }] }),
    ...HIDDEN,
  });
  t.is((await project.tsc("-b", "lib")).code, 0);
  t.notRegex(await project.read("out/lib/index.d.ts"), /redisLock|log/);
  const { code, stdout } = await project.tspc("-p", "app");
  t.not(code, 0);
  t.regex(
    stdout,
    /^app\/main\.ts\(2,22\): error TS901403: LW1403: This imports `Shop\.#pay`, `Shop\.ship` .*`index\.js`/m,
  );
  t.regex(stdout, /^app\/main\.ts\(2,22\): error TS901403: LW1403: This imports `log` .*`log\.js`/m);
  t.like(await project.tspc("-b", "--force"), { code: 0, stdout: "" });
});

test.serial(
  "finds tags missing from declarations in a linked package's sources through its declaration maps",
  async (t) => {
    const { "lib/index.ts": source, "lib/log.ts": log, "app/main.ts": app } = HIDDEN;
    const library = await makeProject(
      {
        "src/index.ts": source,
        "src/log.ts": log,
        "package.json": `{ "name": "shop", "version": "1.0.0", "type": "module", "exports": "./out/index.js" }`,
      },
      { removeComments: true, declaration: true, declarationMap: true },
    );
    const project = await makeProject({ "src/main.ts": app.replace("../lib/index.js", "shop") });
    await symlink(library.dir, project.path("node_modules/shop"));
    t.is((await library.tsc()).code, 0);
    const { code, stdout } = await project.tspc();
    t.is(code, 2);
    t.regex(
      stdout,
      /^src\/main\.ts\(2,22\): error TS901403: LW1403: This imports `Shop\.#pay`, `Shop\.ship` /,
    );
    t.regex((await lockweave(project, "check", "--json")).stdout, /"code": "LW1403"/);
    t.is((await library.tspc()).code, 0);
    t.like(await project.tspc(), { code: 0, stdout: "" });
    await library.write({ "out/index.d.ts.map": "{" });
    t.like(await project.tspc(), { code: 0, stdout: "" });
  },
);
