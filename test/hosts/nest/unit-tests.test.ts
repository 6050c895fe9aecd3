import { mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import test from "ava";
import { installLockweave } from "../bundlers/bundlers";
import { codeUnder } from "../bundlers/recipes";
import { ownCopy } from "../installed";
import { Project, type Files, type Finished } from "../project";
import { installNode } from "../register/nodes";
import { isMatrix } from "../../support/suites";

// Heavy, so they run only in the matrix. Serial, because they share an installation.
const inMatrix = isMatrix ? test.serial : test.skip;

/** The packages and the configuration file from NestJS's page about SWC. */
const RUNNERS = {
  "NestJS 11, Jest with swc": {
    set: "nest-11-swc-jest" as const,
    config: "jest.config.js",
    command: ["../node_modules/jest/bin/jest.js", "--no-cache"],
    plain: (text: string) => text.replace(/\["lockweave\/jest", (.*?)\]/, '"@swc/jest"'),
  },
};

const FILES: Files = {
  "package.json": "{}",
  ".swcrc": JSON.stringify({
    sourceMaps: true,
    jsc: {
      parser: { syntax: "typescript", decorators: true, dynamicImport: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      baseUrl: "./",
    },
    minify: false,
  }),
  "src/orders.service.ts": `import { Injectable } from "@nestjs/common";
import { currentLock } from "lockweave";

@Injectable()
export class OrdersService {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return orderNo + " under " + currentLock().key;
  }
}
`,
  "src/orders.controller.ts": `import { Controller, Get, Param } from "@nestjs/common";
import { OrdersService } from "./orders.service";

@Controller()
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Get("pay/:orderNo")
  async pay(@Param("orderNo") orderNo: string): Promise<string> {
    return await this.orders.pay(orderNo);
  }
}
`,
  "src/orders.controller.spec.ts": `import "reflect-metadata";
import { Test } from "@nestjs/testing";
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

for (const [name, { set, config, command, plain }] of Object.entries(RUNNERS)) {
  inMatrix(`${name}: unit tests run under locks, and fail without the weave`, async (t) => {
    t.timeout(300_000);
    const modules = await ownCopy(set);
    const home = new Project(dirname(modules));
    await installLockweave(home);
    const project = new Project(join(home.dir, "app"));
    await rm(project.dir, { recursive: true, force: true });
    await mkdir(project.dir);
    await symlink(modules, project.path("node_modules"));
    const text = codeUnder("NestJS", config, "testing.md");
    const node = await installNode("24");
    const run = (): Promise<Finished> => project.runWith(node, ...command);
    await project.write({ ...FILES, [config]: text });
    const { code, stdout, stderr } = await run();
    t.is(code, 0, stdout + stderr);
    t.not(plain(text), text);
    await project.write({ [config]: plain(text) });
    const without = await run();
    t.is(without.code, 1);
    t.regex(without.stdout + without.stderr, /was not woven/);
  });
}
