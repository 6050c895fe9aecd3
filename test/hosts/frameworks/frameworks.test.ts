import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrixSerially, isMatrix } from "../../support/suites";
import { PACKAGE, type Project } from "../project";
import { documented, makeApplication } from "./application";
import { assertNoRequestIsLost, openGate, Server } from "./server";

// Runs the code of docs/frameworks.md with the real frameworks.

const page = readFileSync(join(PACKAGE, "docs/frameworks.md"), "utf8");

/** The application that `fastify start` runs. */
const FASTIFY_APP = `import type { FastifyInstance } from "fastify";
import { pay } from "./orders.js";
import locks from "./plugins/locks.js";

export default async function app(fastify: FastifyInstance, _options: object): Promise<void> {
  await fastify.register(locks);
  fastify.post<{ Params: { orderNo: string } }>("/orders/:orderNo/pay", (request) => pay(request.params.orderNo));
  fastify.get("/ready", async () => "ready");
}
`;

/** The command in the page, with a delay for a busy machine. */
function fastifyStart(): readonly string[] {
  const [, command = ""] = /`fastify (start .*)`/.exec(page) ?? [];
  const [, delay = ""] = /--close-grace-delay (\d+) /.exec(command) ?? [];
  const args = command.replace(delay, "300000").replace("dist/", "out/").split(" ");
  return ["node_modules/fastify-cli/cli.js", ...args, "--port", "{port}"];
}

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  Express: ["out/express.js"],
  Fastify: ["out/fastify.js"],
  "Fastify by `fastify start`": fastifyStart(),
  Hono: ["out/hono.js"],
};

let project: Project;
let redis: RedisServer;
test.before(async () => {
  if (!isMatrix) return;
  redis = await startRedis();
  project = await makeApplication({
    "src/express.ts": documented("Express", "src/express.ts"),
    "src/plugins/locks.ts": documented("Fastify", "src/plugins/locks.ts"),
    "src/fastify.ts": documented("Fastify", "src/fastify.ts"),
    "src/app.ts": FASTIFY_APP,
    "src/hono.ts": documented("Hono", "src/hono.ts"),
  });
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
});
test.after.always(() => redis?.stop());

for (const [framework, command] of Object.entries(COMMANDS)) {
  inMatrixSerially(
    `${framework}: a server that gets SIGTERM answers all its requests, and exits`,
    async (t) => {
      const gate = await openGate(t);
      const launch = { cwd: project.dir, redisUrl: redis.url, gateUrl: gate.url };
      const node = [process.execPath, "--import", "./waits.mjs", ...command];
      const servers = [await Server.start(t, node, launch), await Server.start(t, node, launch)] as const;
      await assertNoRequestIsLost(t, gate, servers);
      t.is(await redis.client().exists("LOCK_pay_A1"), 0);
      if (command.includes("start")) return; // Its application has no error handler.
      await redis.client().set("LOCK_pay_busy", "held by another program", "EX", 600);
      t.regex(await servers[1].pay("busy"), /^503 /);
    },
  );
}
