import test from "ava";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrixSerially, isMatrix } from "../../support/suites";
import { codeUnder, fencedUnder } from "../bundlers/recipes";
import { ORDERS, WAITS } from "../frameworks/application";
import { assertNoRequestIsLost, openGate, Server } from "../frameworks/server";
import { linkPackages } from "../link";
import { makeProject } from "../project";

// Servers of NestJS with the code of docs/nestjs.md.

let redis: RedisServer;
test.before(async () => {
  if (isMatrix) redis = await startRedis();
});
test.after.always(() => redis?.stop());

const LOCK_MODULE = fencedUnder("Respond to a busy lock", "ts", "nestjs.md")
  .replace('"redis://localhost:6379"', 'process.env["REDIS_URL"] ?? "", commandTimeout: "1m"')
  .replace(/;\n$/, "");

const APP_MODULE = `import { Controller, Get, HttpCode, Module, Param, Post, ServiceUnavailableException } from "@nestjs/common";
import { LockModule } from "lockweave/nest";
import { pay } from "./orders.js";

@Controller()
class OrdersController {
  @Post("orders/:orderNo/pay")
  @HttpCode(200)
  async pay(@Param("orderNo") orderNo: string): Promise<string> {
    return await pay(orderNo);
  }

  @Get("ready")
  ready(): string {
    return "ready";
  }
}

@Module({ imports: [${LOCK_MODULE}], controllers: [OrdersController] })
export class AppModule {}
`;

for (const version of ["12", "11"] as const) {
  inMatrixSerially(
    `NestJS ${version}: a server that gets SIGTERM answers all its requests, and exits`,
    async (t) => {
      const project = await makeProject(
        {
          ...ORDERS,
          ...WAITS,
          "src/app.module.ts": APP_MODULE,
          "src/main.ts": codeUnder("Shut down", "src/main.ts", "nestjs.md"),
        },
        { types: ["node"], experimentalDecorators: true, emitDecoratorMetadata: true },
      );
      await linkPackages(project, [`nest-${version}-module`], ["ioredis"]);
      t.like(await project.tspc(), { code: 0, stdout: "" });
      const gate = await openGate(t);
      const launch = { cwd: project.dir, redisUrl: redis.url, gateUrl: gate.url };
      const command = [process.execPath, "--import", "./waits.mjs", "out/main.js"];
      const servers = [
        await Server.start(t, command, launch),
        await Server.start(t, command, launch),
      ] as const;
      await assertNoRequestIsLost(t, gate, servers);
      await redis.client().set("LOCK_pay_busy", "held by another program", "EX", 600);
      t.regex(await servers[1].pay("busy"), /^503 .*"Try again"/);
      await redis.client().del("LOCK_pay_busy");
    },
  );
}
