import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import test, { type ExecutionContext } from "ava";
import { lockweave } from "../../cli/command";
import { installLockweave } from "../bundlers/bundlers";
import { deferred } from "../../support/deferred";
import { startRedis } from "../../support/redis-server";
import { EXAMPLE_SCRIPTS, EXAMPLES, linesOf, expectedLinesOf, type Example } from "../examples";
import { ownCopy } from "../installed";
import { installNode } from "../register/nodes";
import { PACKAGE, Project, type Files, type Finished } from "../project";
import { codeUnder } from "../bundlers/recipes";
import { isMatrix } from "../../support/suites";

/**
 * For a test that is too heavy for `npm test`. The tests of a version run one after the other, because they share an installation and its
 * compiler.
 */
function inMatrix(
  title: string,
  body: (t: ExecutionContext) => Promise<void>,
  version: Version = "12",
): void {
  (isMatrix ? test : test.skip)(title, async (t) => {
    const ended = deferred();
    const before = lastEnds.get(version);
    lastEnds.set(version, ended.promise);
    t.teardown(() => ended.resolve()); // The first teardown runs last.
    await before;
    await body(t);
  });
}

/** Resolves when the last test of the version that has started so far has ended. */
const lastEnds = new Map<Version, Promise<void>>();

const VERSIONS = ["12", "11"] as const;

type Version = (typeof VERSIONS)[number];

const SERVICE = `import { Injectable } from "@nestjs/common";
import { currentLock } from "lockweave";
import { setTimeout as sleep } from "node:timers/promises";

@Injectable()
export class OrdersService {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    console.log("begins");
    if (orderNo === "none") throw new Error("no order");
    await sleep(500);
    console.log("ends");
    return orderNo + " under " + currentLock().key;
  }
}
`;
/** `begin` responds before its work is done, so the server does not wait for the work at shutdown. */
const CONTROLLER = `import { Controller, Get, Param } from "@nestjs/common";
import { OrdersService } from "./orders.service";

@Controller()
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Get("pay/:orderNo")
  async pay(@Param("orderNo") orderNo: string): Promise<string> {
    return await this.orders.pay(orderNo).catch((error: Error) => error.stack ?? "");
  }

  @Get("begin/:orderNo")
  begin(@Param("orderNo") orderNo: string): string {
    void this.orders.pay(orderNo);
    return "begun";
  }
}
`;
const LOCKS_SHUTDOWN = `import { type BeforeApplicationShutdown, Injectable } from "@nestjs/common";
import { shutdown } from "lockweave";

@Injectable()
export class LocksShutdown implements BeforeApplicationShutdown {
  async beforeApplicationShutdown(): Promise<void> {
    await shutdown({ patience: "20s" });
  }
}
`;
const MODULE = `import { Module } from "@nestjs/common";
import { LocksShutdown } from "./locks-shutdown";
import { OrdersController } from "./orders.controller";
import { OrdersService } from "./orders.service";

@Module({ controllers: [OrdersController], providers: [OrdersService, LocksShutdown] })
export class AppModule {}
`;
const MAIN = `import "reflect-metadata";
import { NestFactory } from "@nestjs/core";
import { configure, memoryStore } from "lockweave";
import { AppModule } from "./app.module";
import * as orderController from "./order-controller/main";
import * as reentrant from "./reentrant/reentrant";

async function main(): Promise<void> {
  configure({ store: memoryStore() });
  const app = await NestFactory.create(AppModule, { logger: ["error"] });
  app.enableShutdownHooks();
  await app.listen(0, "127.0.0.1");
  console.log(await app.getUrl());
}
const [, , example] = process.argv;
if (example === "order-controller") void orderController.main();
else if (example === "reentrant") void reentrant.main();
else void main();
`;

const PLUGIN = { transform: "lockweave/transformer", transformProgram: true };
const COMPILER_OPTIONS = {
  module: "nodenext",
  target: "es2022",
  lib: ["es2023"],
  types: ["node"],
  strict: true,
  skipLibCheck: true,
  sourceMap: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  rootDir: "src",
  outDir: "dist",
};

const FILES: Files = {
  ...Object.fromEntries(Object.entries(EXAMPLE_SCRIPTS).map(([file, text]) => [`src/${file}`, text])),
  "package.json": "{}",
  "nest-cli.json": `{ "sourceRoot": "src" }`,
  "tsconfig.json": JSON.stringify({
    compilerOptions: { ...COMPILER_OPTIONS, plugins: [PLUGIN] },
    include: ["src"],
  }),
  ".swcrc": JSON.stringify({
    sourceMaps: true,
    module: { type: "commonjs" },
    jsc: {
      target: "es2022",
      parser: { syntax: "typescript", decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
  }),
  "src/main.ts": MAIN,
  "src/app.module.ts": MODULE,
  "src/orders.controller.ts": CONTROLLER,
  "src/orders.service.ts": SERVICE,
  "src/locks-shutdown.ts": LOCKS_SHUTDOWN,
};

interface Application {
  /** Waits until the rebuilt application listens again. */
  restarted(): Promise<void>;
  get(path: string): Promise<string>;
  post(path: string): Promise<string>;
  /** Waits until the output contains these words. */
  printed(words: string): Promise<void>;
  /** Sends the signal. Returns the output of the process and the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<{ output: string[]; signal: NodeJS.Signals | null }>;
}

class NestProject extends Project {
  readonly node: string;
  readonly #stops: (() => void)[] = [];

  private constructor(dir: string, node: string) {
    super(dir);
    this.node = node;
  }

  static async make(files: Files = {}, version: Version = "12"): Promise<NestProject> {
    const project = await NestProject.#create(version, "app");
    await mkdir(project.dir);
    await project.#useInstalled();
    await project.write({ ...FILES, ...files });
    return project;
  }

  /** Creates a project with `nest new` and adds these files. */
  static async started(version: Version, files: Files): Promise<NestProject> {
    const project = await NestProject.#create(version, "started");
    const home = new Project(dirname(project.dir));
    const cli = "node_modules/@nestjs/cli/bin/nest.js";
    const command = ["new", "started", "--skip-git", "--skip-install", "--package-manager", "npm"];
    const { code, stdout, stderr } = await home.runWith(project.node, cli, ...command);
    if (code !== 0) throw new Error(stdout + stderr);
    await project.#useInstalled();
    await project.write(files);
    return project;
  }

  /** Copies the example in the repository. */
  static async example(): Promise<NestProject> {
    const project = await NestProject.#create("12", "example");
    await cp(join(PACKAGE, "examples/nest"), project.dir, {
      recursive: true,
      filter: (path) => !/[/\\](?:node_modules|dist)$/.test(path),
    });
    await project.#useInstalled();
    return project;
  }

  static async #create(version: Version, name: string): Promise<NestProject> {
    const home = new Project(dirname(await ownCopy(`nest-${version}`)));
    await installLockweave(home);
    const project = new NestProject(join(home.dir, name), await installNode("24"));
    await rm(project.dir, { recursive: true, force: true });
    return project;
  }

  async #useInstalled(): Promise<void> {
    await symlink("../node_modules", this.path("node_modules")); // webpack does not bundle packages from there.
  }

  /** Runs `npx ts-patch install` or `uninstall`, with a cache of this version's own, since ts-patch's lock of its cache is unreliable. */
  patch(command: "install" | "uninstall"): Promise<Finished> {
    const cache = `TSP_CACHE_DIR=${process.env["TSP_CACHE_DIR"]}/${basename(dirname(this.dir))}`;
    const tsPatch = "../node_modules/ts-patch/bin/ts-patch.js";
    return this.runWith("/usr/bin/env", cache, this.node, tsPatch, command, "-s", "-d", "..");
  }

  /** Runs the starter's `npm run lint`, without the `--fix` that some starters write there. */
  async lint(...args: readonly string[]): Promise<Finished> {
    const { scripts } = JSON.parse(await this.read("package.json")) as { scripts: { lint: string } };
    const command = [scripts.lint.replace(" --fix", ""), ...args].join(" ");
    const path = `${dirname(this.node)}:../node_modules/.bin:$PATH`;
    return await this.runWith("/bin/sh", "-c", `PATH=${path} ${command}`);
  }

  build(...args: readonly string[]): Promise<Finished> {
    return this.runWith(this.node, "../node_modules/@nestjs/cli/bin/nest.js", "build", ...args);
  }

  /** The built entry file. The swc builder of NestJS 11 keeps the directory name `src`. */
  get #main(): string {
    return ["dist/main.js", "dist/src/main.js"].find((file) => existsSync(this.path(file))) ?? "";
  }

  /** Runs a built example. */
  play(example: Example, ...args: readonly string[]): Promise<Finished> {
    return this.runWith(this.node, ...args, this.#main, example);
  }

  /** Starts the application with environment variables. */
  startWith(env: NodeJS.ProcessEnv): Promise<Application> {
    return this.#run(["--enable-source-maps", this.#main], env);
  }

  start(...args: readonly string[]): Promise<Application> {
    return this.#run(["--enable-source-maps", ...args, this.#main]);
  }

  /** Runs `nest start --watch`. */
  watch(build: readonly string[], start: readonly string[]): Promise<Application> {
    const command = [
      "../node_modules/@nestjs/cli/bin/nest.js",
      "start",
      "--watch",
      ...build,
      ...(start.length === 0 ? [] : ["--exec", `node ${start.join(" ")}`]),
    ];
    return this.#run(command);
  }

  async #run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Application> {
    const child = spawn(this.node, args, {
      cwd: this.dir,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // A process group, since the watch command starts another process.
    });
    this.#stops.push(() => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, "SIGKILL");
    });
    const lines: string[] = [];
    let complaints = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (complaints += text));
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (line) => lines.push(line));
    const closed = once(child, "close");
    const until = async (isSo: () => boolean): Promise<void> => {
      while (!isSo()) {
        await Promise.race([once(reader, "line"), once(child.stderr, "data"), closed]);
        // The watch command survives when the application dies.
        if (child.exitCode !== null || complaints.includes("LOCK_NOT_WOVEN")) throw new Error(complaints);
      }
    };
    const urls = (): string[] => lines.filter((line) => line.startsWith("http://"));
    let starts = 1;
    await until(() => urls().length === starts);
    return {
      printed: (words) => until(() => lines.some((line) => line.includes(words))),
      restarted: async () => {
        starts += 1;
        await until(() => urls().length === starts);
      },
      post: async (path) => await (await fetch(`${urls().at(-1)}/${path}`, { method: "POST" })).text(),
      get: async (path) => await (await fetch(`${urls().at(-1)}/${path}`)).text(),
      end: async (signal) => {
        child.kill(signal);
        await closed;
        return { output: lines.slice(1), signal: child.signalCode };
      },
    };
  }

  /** Ends all started processes and their children. */
  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

/** The line of the error. */
const IN_SOURCES = /src\/orders\.service\.ts:10:/;

const WITH_MAPS = {
  "webpack.config.js": 'module.exports = (options) => ({ ...options, devtool: "source-map" });',
};
const WEBPACK = { "webpack.config.js": codeUnder("NestJS", "webpack.config.js") };

const REGISTER = ["--import", "lockweave/register"];

const BUILDERS = {
  "tsc, patched": { patch: true, files: {}, build: [], start: [], lines: IN_SOURCES },
  "webpack, patched": { patch: true, files: WITH_MAPS, build: ["--webpack"], start: [], lines: IN_SOURCES },
  "webpack with the plugin": {
    patch: false,
    files: WEBPACK,
    build: ["--webpack"],
    start: [],
    lines: IN_SOURCES,
  },
  "swc with the hook": {
    patch: false,
    files: {},
    build: ["-b", "swc"],
    start: REGISTER,
    lines: /dist\/(?:src\/)?orders\.service\.js:\d+:/,
  },
};

const BUILDS = VERSIONS.flatMap((version) =>
  Object.entries(BUILDERS).map(([builder, how]) => [version, builder, how] as const),
);

for (const [version, builder, { patch, files, build, start, lines }] of BUILDS) {
  inMatrix(
    `NestJS ${version}, ${builder}: a build and both examples run under locks, and stack traces show the right lines`,
    async (t) => {
      t.timeout(300_000);
      const project = await NestProject.make(files, version);
      await project.patch(patch ? "install" : "uninstall");
      t.teardown(() => project.patch("uninstall"));
      const { code, stdout, stderr } = await project.build(...build);
      t.is(code, 0, stdout + stderr);
      const application = await project.start(...start);
      t.is(await application.get("pay/A1"), "A1 under LOCK_pay_A1");
      const stack = await application.get("pay/none");
      t.regex(stack, lines);
      await application.end("SIGKILL");
      for (const example of EXAMPLES) {
        const played = await project.play(example, ...start);
        t.deepEqual(linesOf(played.stdout), await expectedLinesOf(example), played.stderr);
      }
    },
    version,
  );
}

for (const [version, builder, { patch, files, build, start }] of BUILDS) {
  inMatrix(
    `NestJS ${version}, ${builder}: \`nest start --watch\` weaves an edited file again`,
    async (t) => {
      t.timeout(300_000);
      const project = await NestProject.make(files, version);
      await project.patch(patch ? "install" : "uninstall");
      t.teardown(() => project.patch("uninstall"));
      t.teardown(() => project.stop());
      const application = await project.watch(build, start);
      t.is(await application.get("pay/A1"), "A1 under LOCK_pay_A1");
      const edited = SERVICE.replace("businessFlag=pay", "businessFlag=settle");
      await project.write({ "src/orders.service.ts": edited });
      await application.restarted();
      t.is(await application.get("pay/A1"), "A1 under LOCK_settle_A1");
    },
    version,
  );
}

/** Without swc, which treats tags as comments. Its output refuses to start. */
for (const [version, builder, { patch, files, build }] of BUILDS.filter(
  ([, name]) => !name.startsWith("swc"),
)) {
  inMatrix(
    `NestJS ${version}, ${builder}: an invalid tag fails the build with an error at its position`,
    async (t) => {
      t.timeout(300_000);
      const wrong = SERVICE.replace("keyName=orderNo", "keyName=orderNO");
      const project = await NestProject.make({ ...files, "src/orders.service.ts": wrong }, version);
      await project.patch(patch ? "install" : "uninstall");
      t.teardown(() => project.patch("uninstall"));
      const { code, stdout, stderr } = await project.build(...build);
      t.is(code, 1);
      const output = stripVTControlCharacters(stdout + stderr);
      t.regex(output, /LW1202: The function has no parameter `orderNO`/);
      t.regex(output, /orders\.service\.ts[:( ]7[:,]4[23]/);
    },
    version,
  );
}

inMatrix("NestJS, swc with the hook: an invalid tag fails the start with the same message", async (t) => {
  t.timeout(300_000);
  const wrong = SERVICE.replace("keyName=orderNo", "keyName=orderNO");
  const project = await NestProject.make({ "src/orders.service.ts": wrong });
  await project.patch("uninstall");
  t.like(await project.build("-b", "swc"), { code: 0 });
  await t.throwsAsync(project.start("--import", "lockweave/register"), {
    message: /src\/orders\.service\.ts\(7,43\): error LW1202: The function has no parameter `orderNO`/,
  });
});

/** swc drops this tag unless its settings say to keep all comments. */
const DROPPED = SERVICE.replace("OrdersService {\n  /**", "OrdersService { /**");

function swcSettings(settings: object, jsc: object): string {
  const { jsc: before, ...usual } = JSON.parse(FILES[".swcrc"] ?? "") as { jsc: object };
  return JSON.stringify({ ...usual, ...settings, jsc: { ...before, ...jsc } });
}

for (const version of VERSIONS) {
  for (const sourceMaps of [true, false]) {
    inMatrix(
      `NestJS ${version}, swc with the hook: a tag that swc drops fails the start, ${sourceMaps ? "with" : "without"} source maps`,
      async (t) => {
        t.timeout(300_000);
        const files = { ".swcrc": swcSettings({ sourceMaps }, {}), "src/orders.service.ts": DROPPED };
        const project = await NestProject.make(files, version);
        await project.patch("uninstall");
        t.like(await project.build("-b", "swc"), { code: 0 });
        await t.throwsAsync(project.start(...REGISTER), {
          message: /`orders\.service\.js` does not contain the lock of `OrdersService\.pay`/,
        });
        await project.write({ ".swcrc": swcSettings({ sourceMaps }, { preserveAllComments: true }) });
        t.like(await project.build("-b", "swc"), { code: 0 });
        const application = await project.start(...REGISTER);
        t.is(await application.get("pay/A1"), "A1 under LOCK_pay_A1");
        await application.end("SIGKILL");
      },
      version,
    );
  }

  inMatrix(
    `NestJS ${version}, swc after init: \`nest start --watch\` weaves an edited file again`,
    async (t) => {
      t.timeout(300_000);
      const settings = JSON.stringify({ sourceRoot: "src", compilerOptions: { builder: "swc" } });
      const tsconfig = { compilerOptions: COMPILER_OPTIONS, include: ["src"] };
      const files = {
        "nest-cli.json": settings,
        "tsconfig.json": JSON.stringify(tsconfig),
        "src/orders.service.ts": DROPPED,
      };
      const project = await NestProject.make(files, version);
      await project.patch("uninstall");
      t.teardown(() => project.stop());
      const set = await lockweave(project, "init", "--yes");
      t.is(set.code, 0, set.stdout + set.stderr);
      t.true(set.stdout.includes("src/orders.service.ts has tags already"), set.stdout);
      const application = await project.watch([], []);
      t.is(await application.get("pay/A1"), "A1 under LOCK_pay_A1");
      await project.write({ "src/orders.service.ts": DROPPED.replace("=pay", "=settle") });
      await application.restarted();
      t.is(await application.get("pay/A1"), "A1 under LOCK_settle_A1");
    },
    version,
  );
}

for (const [version, build] of VERSIONS.flatMap((one) =>
  [[], ["--webpack"], ["-b", "swc"]].map((args) => [one, args] as const),
)) {
  inMatrix(
    `NestJS ${version}: the output of \`nest build ${build.join(" ")}\` without the weave does not start`,
    async (t) => {
      t.timeout(300_000);
      const project = await NestProject.make({}, version);
      await project.patch("uninstall");
      t.like(await project.build(...build), { code: 0 });
      await t.throwsAsync(project.start(), { message: /LOCK_NOT_WOVEN/ });
    },
    version,
  );
}

inMatrix("NestJS: at a signal, a body finishes only if the shutdown hooks wait for the locks", async (t) => {
  t.timeout(300_000);
  const without = MODULE.replace(", LocksShutdown] })", "] })");
  t.not(without, MODULE);
  for (const [module, output] of [
    [MODULE, ["begins", "ends"]],
    [without, ["begins"]],
  ] as const) {
    const project = await NestProject.make({ "src/app.module.ts": module });
    await project.patch("install");
    t.teardown(() => project.patch("uninstall"));
    t.like(await project.build(), { code: 0 });
    const application = await project.start();
    await application.get("begin/A1");
    await application.printed("begins");
    t.deepEqual(await application.end("SIGTERM"), { output: [...output], signal: "SIGTERM" });
  }
});

const SPEC = `import { assertWoven } from "lockweave";
import { OrdersService } from "./orders.service";
test("woven", () => assertWoven(OrdersService.prototype.pay));
`;

inMatrix(
  "NestJS 11: ts-jest weaves with the patched compiler, but needs --no-cache after the patch",
  async (t) => {
    t.timeout(300_000);
    const options = {
      ...COMPILER_OPTIONS,
      types: ["node", "jest"],
      isolatedModules: true,
      esModuleInterop: true,
    };
    const project = await NestProject.make(
      {
        "tsconfig.json": JSON.stringify({
          compilerOptions: { ...options, plugins: [PLUGIN] },
          include: ["src"],
        }),
        "jest.config.json": JSON.stringify({
          rootDir: "src",
          testRegex: String.raw`.*\.spec\.ts$`,
          transform: { "^.+\\.(t|j)s$": "ts-jest" },
          cacheDirectory: "<rootDir>/../cache",
        }),
        "src/orders.service.spec.ts": SPEC,
      },
      "11",
    );
    const jest = (...args: readonly string[]): Promise<Finished> =>
      project.runWith(project.node, "../node_modules/jest/bin/jest.js", ...args);
    await project.patch("uninstall");
    t.regex((await jest()).stderr, /`pay` was not woven/);
    await project.patch("install");
    t.teardown(() => project.patch("uninstall"));
    t.like(await jest(), { code: 1 });
    const { code, stderr } = await jest("--no-cache");
    t.is(code, 0, stderr);
  },
  "11",
);

inMatrix(
  "NestJS 11: ts-jest reports a package that was built without its locks, except with isolatedModules",
  async (t) => {
    t.timeout(300_000);
    const options = { ...COMPILER_OPTIONS, types: ["node", "jest"], esModuleInterop: true };
    const configOf = (compilerOptions: object): string =>
      JSON.stringify({ compilerOptions: { ...compilerOptions, plugins: [PLUGIN] }, include: ["src"] });
    const project = await NestProject.make(
      {
        "tsconfig.json": configOf(options),
        "jest.config.json": JSON.stringify({
          rootDir: "src",
          testRegex: String.raw`.*\.spec\.ts$`,
          transform: { "^.+\\.(t|j)s$": "ts-jest" },
          cacheDirectory: "<rootDir>/../cache",
        }),
        "shop/package.json": `{ "name": "shop" }`,
        "shop/index.js": "exports.refund = async (id) => id;",
        "shop/index.d.ts": `/** @redisLock businessFlag=refund keyName=id */
export declare function refund(id: string): Promise<string>;
`,
        // No tag is in these files, so only the check of dependencies can find the missing lock.
        "src/refunds.ts": `import { refund } from "shop";\nexport const refunded = (): Promise<string> => refund("A1");\n`,
        "src/refunds.spec.ts": `import { refunded } from "./refunds";
test("refunds", async () => expect(await refunded()).toBe("A1"));
`,
      },
      "11",
    );
    const link = join(project.dir, "../node_modules/shop");
    await rm(link, { recursive: true, force: true });
    await cp(project.path("shop"), link, { recursive: true });
    t.teardown(() => rm(link, { recursive: true }));
    const jest = (): Promise<Finished> =>
      project.runWith(project.node, "../node_modules/jest/bin/jest.js", "--no-cache", "refunds");
    await project.patch("install");
    t.teardown(() => project.patch("uninstall"));
    const { code, stderr } = await jest();
    t.is(code, 1, stderr);
    t.regex(
      stripVTControlCharacters(stderr),
      /src\/refunds\.ts:1:24.*TS901403: LW1403: This imports `refund`/s,
    );
    // ts-jest then compiles each file alone, and does not look at its packages. `check` does.
    await project.write({ "tsconfig.json": configOf({ ...options, isolatedModules: true }) });
    t.like(await jest(), { code: 0 });
    const checked = await lockweave(project, "check");
    t.is(checked.code, 1);
    t.regex(checked.stdout + checked.stderr, /^src\/refunds\.ts:1:24: LW1403: This imports `refund`/m);
    await project.patch("uninstall");
    t.like(await jest(), { code: 0 });
  },
  "11",
);

/** The extensions in imports. `nest new` creates ES modules in version 12 and CommonJS in version 11. */
const EXTENSIONS: Readonly<Record<Version, string>> = { "12": ".js", "11": "" };

const STARTED: Files = {
  "src/orders.service.ts": SERVICE,
  "src/orders.controller.ts": CONTROLLER,
  "src/app.module.ts": MODULE.replace(/^.*locks-shutdown.*\n/m, "").replace(", LocksShutdown", ""),
  "src/main.ts": `import { NestFactory } from "@nestjs/core";
import { configure, memoryStore } from "lockweave";
import { AppModule } from "./app.module";

async function bootstrap(): Promise<void> {
  configure({ store: memoryStore() });
  const app = await NestFactory.create(AppModule, { logger: ["error"] });
  await app.listen(0, "127.0.0.1");
  console.log(await app.getUrl());
}
void bootstrap();
`,
  "src/orders.controller.spec.ts": `import { Test } from "@nestjs/testing";
import { assertWoven, testLocks } from "lockweave/testing";
import { OrdersController } from "./orders.controller";
import { OrdersService } from "./orders.service";

const locks = testLocks();
afterEach(() => locks.reset());
afterAll(() => locks.close());

test("an order is paid under its lock", async () => {
  assertWoven(OrdersService.prototype.pay);
  const parts = { controllers: [OrdersController], providers: [OrdersService] };
  const application = await Test.createTestingModule(parts).compile();
  expect(await application.get(OrdersController).pay("A1")).toBe("A1 under LOCK_pay_A1");
  expect(locks.acquired).toEqual(["LOCK_pay_A1"]);
});
`,
};

const TESTED_BY = {
  "12": ["node_modules/vitest/vitest.mjs", "run", "--no-color"],
  "11": ["node_modules/jest/bin/jest.js"],
} as const;

for (const version of VERSIONS) {
  inMatrix(
    `NestJS ${version}: a project of \`nest new\` runs and is tested under its locks after init`,
    async (t) => {
      t.timeout(300_000);
      const files = Object.entries(STARTED).map(([file, text]) => [
        file,
        text.replace(/(?<=from "\.\/[\w.-]+)(?=")/g, EXTENSIONS[version]),
      ]);
      const project = await NestProject.started(version, Object.fromEntries(files) as Files);
      await rm(project.path("src/app.controller.spec.ts"));
      await project.patch("uninstall");
      const tested = (): Promise<Finished> => project.runWith(project.node, ...TESTED_BY[version]);
      const unwoven = await tested();
      t.is(unwoven.code, 1);
      t.regex(
        unwoven.stdout + unwoven.stderr,
        /LockNotWovenError: The file that calls testLocks\(\) was not woven/,
      );

      t.teardown(() => project.patch("uninstall"));
      const set = await lockweave(project, "init", "--yes");
      t.is(set.code, 0, set.stdout + set.stderr);
      const { code, stdout, stderr } = await tested();
      t.is(code, 0, stdout + stderr);
      const built = await project.build();
      t.is(built.code, 0, built.stdout + built.stderr);
      const application = await project.start();
      t.is(await application.get("pay/A1"), "A1 under LOCK_pay_A1");
      await application.end("SIGKILL");
    },
    version,
  );
}

/** Formatted code with a tag and three faults: a promise that nobody awaits, a needless spread, and a needless `as`. */
const LINTED = `
/** @redisLock businessFlag=lint keyName=id */
export async function locked(id: string): Promise<string> {
  await Promise.resolve();
  Promise.resolve();
  return [...[id as string]].join('');
}
`;
const LINTERS = {
  "12": { reports: "no-floating-promises", fixed: LINTED.replace("[...[id as string]]", "[id as string]") },
  "11": { reports: "no-unnecessary-type-assertion", fixed: LINTED.replace("id as string", "id") },
} as const;

for (const version of VERSIONS) {
  inMatrix(
    `NestJS ${version}: \`npm run lint\` fixes only real faults in tagged files`,
    async (t) => {
      t.timeout(300_000);
      const project = await NestProject.started(version, {});
      t.teardown(() => project.patch("uninstall"));
      const set = await lockweave(project, "init", "--yes");
      t.is(set.code, 0, set.stdout + set.stderr);
      t.like(await project.patch("install"), { code: 0 });
      const files = (await readdir(project.dir, { recursive: true })).filter((file) =>
        /^(?:src|test)[/\\].*\.ts$/.test(file),
      );
      t.true(files.length > 5);
      await project.lint("--fix"); // The starter itself contains faults that the linter fixes.
      const { code, stdout: before } = await project.lint();
      t.is(code, 0, before); // The first lock contains no fault.
      const texts = new Map<string, string>();
      for (const file of files) texts.set(file, await project.read(file));
      for (const [file, text] of texts) await project.write({ [file]: text + LINTED });

      const { reports, fixed } = LINTERS[version];
      const { stdout } = await project.lint();
      t.notRegex(stdout, /require\(\)|await-thenable/); // Woven code has both.
      const reported = files.filter((file) => stdout.includes(file));
      t.deepEqual(reported, files, stdout);
      t.true(stdout.split(reports).length > files.length, stdout); // It knows types.
      await project.lint("--fix");
      for (const [file, text] of texts) t.is(await project.read(file), text + fixed, file);
    },
    version,
  );
}

inMatrix(
  "NestJS: the example in the repository builds, passes its tests, and pays once on Redis",
  async (t) => {
    t.timeout(300_000);
    const redis = await startRedis();
    t.teardown(() => redis.stop());
    const project = await NestProject.example();
    await project.patch("install");
    t.teardown(() => project.patch("uninstall"));
    const tested = await project.runWith(project.node, ...TESTED_BY["12"]);
    t.is(tested.code, 0, tested.stdout + tested.stderr);
    const { code, stdout, stderr } = await project.build();
    t.is(code, 0, stdout + stderr);
    const application = await project.startWith({ PORT: "0", REDIS_URL: redis.url });
    t.teardown(() => project.stop());
    const answers = await Promise.all([1, 2].map(() => application.post("orders/A1/payment")));
    t.deepEqual(answers.toSorted(), ["A1 is paid", "A1 was paid before"]);
    t.is((await application.end("SIGTERM")).signal, "SIGTERM");
  },
);
