import test from "ava";
import { freePort, startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrix, isMatrix } from "../../support/suites";
import { codeUnder } from "../bundlers/recipes";
import { linkPackages } from "../link";
import { makeProject, type Files, type Finished, type Project } from "../project";

// `LockModule` in real applications of NestJS, with the code of docs/nestjs.md. The type checker compares its types with NestJS's own.

const VERSIONS = ["12", "11"] as const;

let server: RedisServer;
test.before(async () => {
  if (isMatrix) server = await startRedis();
});
test.after.always(() => server?.stop());

const SERVICE = `import { Injectable } from "@nestjs/common";
import { currentLock } from "lockweave";
import { setTimeout as sleep } from "node:timers/promises";

@Injectable()
export class OrdersService {
  isShipping = false;

  async onModuleInit(): Promise<void> {
    console.log("init", await this.pay("A1"));
  }

  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return currentLock().key;
  }

  /** @redisLock businessFlag=ship keyName=orderNo */
  async ship(orderNo: string): Promise<void> {
    this.isShipping = true;
    await sleep(300);
    console.log("ends");
  }
}
`;

const SETTINGS = `import { Injectable, Module } from "@nestjs/common";

@Injectable()
export class Settings {
  readonly redisUrl = process.env["REDIS_URL"] ?? "";
}

@Module({ providers: [Settings], exports: [Settings] })
export class SettingsModule {}
`;

const MAIN = `import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { TerminusModule } from "@nestjs/terminus";
import { AppModule as Own } from "./app.module.js";
import { HealthController } from "./health.controller.js";
import { OrdersService } from "./orders.service.js";
import { setTimeout as sleep } from "node:timers/promises";

@Module({ imports: [Own, TerminusModule], controllers: [HealthController] })
class WholeModule {}

const app = await NestFactory.createApplicationContext(WholeModule, { logger: false, abortOnError: false });
const { status, info } = await app.get(HealthController).check();
console.log("health", status, info?.["locks"]?.status, Object.keys(info?.["locks"]?.["stores"] ?? {}).join());
const orders = app.get(OrdersService);
void orders.ship("A1");
while (!orders.isShipping) await sleep(5);
await app.close();
console.log("closed");
await orders.pay("A1").catch((error: { code?: string }) => console.log("after", error.code));
`;

const FAILING = `import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { configure, memoryStore, shutdown } from "lockweave";
import { LockModule, type LockModuleOptions } from "lockweave/nest";

async function started(options: LockModuleOptions): Promise<string> {
  try {
    class AppModule {}
    Module({ imports: [LockModule.forRoot(options)] })(AppModule);
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    await app.close();
    return "started";
  } catch (error) {
    return String((error as { code?: string }).code);
  }
}
const logger = { warn() {} };
const redis = process.env["DOWN"] ?? "";
console.log("down", await started({ redis, logger, ready: { timeout: "200ms" }, commandTimeout: "50ms" }));
console.log("down, but not asked", await started({ redis, logger }));
console.log("up", await started({ redis: process.env["REDIS_URL"] ?? "", ready: { timeout: "1m" } }));
console.log("bad option", await started({ store: memoryStore(), warnAfter: "soon" as "5s" }));
console.log("signals", await started({ store: memoryStore(), shutdownOn: ["SIGTERM"] } as LockModuleOptions));
console.log("again", await started({ store: memoryStore() }), await started({ store: memoryStore() }));
configure({ store: memoryStore() });
console.log("configured elsewhere", await started({ store: memoryStore() }));
await shutdown();
`;

const SPEC = `import "reflect-metadata";
import { Test } from "@nestjs/testing";
import { LOCKS } from "lockweave/nest";
import { testLocks } from "lockweave/testing";
import { OrdersService } from "./orders.service.js";

for (const file of ["./app.module.js", "./async.module.js"]) {
  const { AppModule } = (await import(file)) as { readonly AppModule: new () => object };
  const locks = testLocks();
  const builder = Test.createTestingModule({ imports: [AppModule] });
  const app = await builder.overrideProvider(LOCKS).useValue(locks).compile();
  await app.get(OrdersService).pay("A2");
  console.log(locks.acquired.join());
  await app.close();
  await locks.close();
}
`;

const REDIS = '"redis://localhost:6379"';

const FILES: Files = {
  "src/orders.service.ts": SERVICE,
  "src/settings.ts": SETTINGS,
  "src/failing.ts": FAILING,
  "src/spec.ts": SPEC,
  "src/main.ts": MAIN,
  "src/async.ts": MAIN.replace("./app.module.js", "./async.module.js"),
};

async function projectOf(version: (typeof VERSIONS)[number]): Promise<Project> {
  const documented = (heading: string, file: string): string =>
    codeUnder(heading, file, "nestjs.md").replace(REDIS, 'process.env["REDIS_URL"] ?? "", ready: true');
  const project = await makeProject(
    {
      ...FILES,
      "src/app.module.ts": documented("Import the module", "src/app.module.ts"),
      "src/async.module.ts": documented("Options from other providers", "src/async.module.ts").replace(
        "settings.redisUrl",
        "settings.redisUrl, ready: true",
      ),
      "src/health.controller.ts": documented("Health checks with Terminus", "src/health.controller.ts"),
    },
    { types: ["node"], experimentalDecorators: true, emitDecoratorMetadata: true },
  );
  await linkPackages(project, [`nest-${version}-module`], ["ioredis"]);
  return project;
}

async function run(project: Project, program: string): Promise<Finished> {
  const variables = [`REDIS_URL=${server.url}`, `DOWN=redis://127.0.0.1:${await freePort()}`];
  return await project.runWith("/usr/bin/env", ...variables, process.execPath, `out/${program}.js`);
}

for (const version of VERSIONS) {
  inMatrix(
    `NestJS ${version}: LockModule configures locks, reports health, and lets bodies finish at the shutdown`,
    async (t) => {
      const project = await projectOf(version);
      t.like(await project.tspc(), { code: 0, stdout: "" });
      const lines = ["init LOCK_pay_A1", "health ok up default", "ends", "closed", "after LOCK_CLOSED"];
      for (const program of ["main", "async"]) {
        const { code, stdout, stderr } = await run(project, program);
        t.deepEqual(stdout.trimEnd().split("\n"), lines, program + stderr);
        t.is(code, 0);
      }
      const failing = await run(project, "failing");
      t.deepEqual(
        failing.stdout.trimEnd().split("\n"),
        [
          "down LOCK_UNREACHABLE",
          "down, but not asked started",
          "up started",
          "bad option LOCK_BAD_OPTION",
          "signals LOCK_BAD_OPTION",
          "again started started",
          "configured elsewhere LOCK_MISCONFIGURED",
        ],
        failing.stderr,
      );
      const spec = await run(project, "spec");
      t.deepEqual([spec.stdout, spec.code], ["LOCK_pay_A2\nLOCK_pay_A2\n", 0], spec.stderr);
      t.like(await project.tsc(), { code: 0, stdout: "" });
      const unwoven = await run(project, "main");
      t.is(unwoven.stdout, "");
      t.regex(unwoven.stderr, /LOCK_NOT_WOVEN/);
    },
  );
}
