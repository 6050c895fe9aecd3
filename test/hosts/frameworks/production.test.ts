import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { ABOUT_ATTRIBUTES } from "../../../runtime/attributes/documentation";
import { pack } from "../../package/consumer";
import { reasonAgainstContainers } from "../../support/container";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrixSerially, isMatrix } from "../../support/suites";
import { until } from "../../support/until";
import { codeUnder, fencedUnder } from "../bundlers/recipes";
import { versionIn } from "../installed";
import { makeProject, PACKAGE, tsconfig, type Project } from "../project";
import { documented, frameworks, makeApplication, ORDERS, WAITS } from "./application";
import { assertNoRequestIsLost, openGate, Server } from "./server";

// Runs the code, the Dockerfile, and the manifest of docs/production.md.

let redis: RedisServer;
test.before(async () => {
  if (isMatrix) redis = await startRedis();
});
test.after.always(() => redis?.stop());

const dockerfile = fencedUnder("Docker", "dockerfile", "production.md");

/** Creates the application of the Dockerfile, without `node_modules`. */
async function sources(): Promise<Project> {
  const { tarball } = await pack();
  const project = await makeProject({
    ...ORDERS,
    ...WAITS,
    "src/main.ts": documented("Express", "src/express.ts"),
    "tsconfig.json": tsconfig({ types: ["node"], outDir: "dist" }),
    "package.json": JSON.stringify({
      type: "module",
      scripts: { build: "tspc" },
      dependencies: {
        express: versionIn("frameworks", "express"),
        ioredis: "6.0.0",
        lockweave: `file:${tarball}`,
      },
      devDependencies: {
        "@types/express": versionIn("frameworks", "@types/express"),
        "@types/node": "20.19.43",
        "ts-patch": "3.3.0",
        typescript: "6.0.3",
      },
    }),
  });
  await rm(project.path("node_modules"), { recursive: true });
  const args = ["install", "--package-lock-only", "--prefer-offline", "--no-audit", "--no-fund"];
  await promisify(execFile)("npm", args, { cwd: project.dir });
  return project;
}

inMatrixSerially(
  "the Dockerfile builds a server that runs as process 1 and loses no request in a rolling update",
  async (t) => {
    t.timeout(600_000);
    const against = reasonAgainstContainers();
    if (against !== undefined) t.log(`Not tested as process 1: ${against}`);
    const project = await sources();
    const commands = [...dockerfile.matchAll(/^RUN (.*)$/gm)].map(([, command = ""]) => command);
    t.is(commands.length, 4);
    const env = { ...process.env, npm_config_prefer_offline: "true", npm_config_audit: "false" };
    for (const command of commands) {
      await promisify(execFile)("sh", ["-c", command], { cwd: project.dir, env });
    }
    t.deepEqual(
      readdirSync(project.path("node_modules")).filter((name) => ["typescript", "ts-patch"].includes(name)),
      [],
    );

    const [, list = "[]"] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? [];
    const [program, ...args] = JSON.parse(list) as string[];
    t.is(program, "node");
    const command = [process.execPath, "--import", "./waits.mjs", ...args];
    const gate = await openGate(t);
    const launch = { cwd: project.dir, redisUrl: redis.url, gateUrl: gate.url };
    const pod = { ...launch, isFirstProcess: against === undefined };
    const pods = [await Server.start(t, command, pod), await Server.start(t, command, pod)] as const;
    await assertNoRequestIsLost(t, gate, pods);
  },
);

interface Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly [
          {
            readonly env: readonly { readonly name: string; readonly value: string }[];
            readonly ports: readonly [{ readonly containerPort: number }];
            readonly readinessProbe: { readonly httpGet: { readonly path: string; readonly port: number } };
            readonly livenessProbe: { readonly tcpSocket: { readonly port: number } };
            readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
          },
        ];
      };
    };
  };
}

const PATIENCE_SECONDS = 10;

/** Returns the default of an attribute. */
function defaultOf(name: string): number {
  return Number(ABOUT_ATTRIBUTES[name]?.byDefault.replaceAll("`", ""));
}

inMatrixSerially("the manifest is a Deployment whose grace period covers a whole request", async (t) => {
  const { parse } = createRequire(join(await frameworks(), "manifest.js"))("yaml") as {
    parse: (text: string) => unknown;
  };
  const manifest = parse(fencedUnder("Kubernetes", "yaml", "production.md"));
  const project = await makeApplication({
    "src/manifest.ts": `import type { Deployment } from "kubernetes-types/apps/v1.js";
export const manifest: Deployment = ${JSON.stringify(manifest)};
`,
  });
  t.like(await project.tspc("--noEmit"), { code: 0, stdout: "" });

  const { terminationGracePeriodSeconds, containers } = (manifest as Manifest).spec.template.spec;
  const [{ env, ports, readinessProbe, livenessProbe, lifecycle }] = containers;
  const waitSeconds = (defaultOf("retryTimes") * defaultOf("waitTime")) / 1_000;
  t.is(waitSeconds, 15);
  const withoutBody = lifecycle.preStop.sleep.seconds + waitSeconds + PATIENCE_SECONDS;
  t.true(terminationGracePeriodSeconds >= withoutBody + 10);
  const port = ports[0].containerPort;
  t.deepEqual([readinessProbe.httpGet.port, livenessProbe.tcpSocket.port], [port, port]);
  t.deepEqual(env.find(({ name }) => name === "PORT")?.value, String(port));
  for (const [framework, get] of Object.entries({ Express: "app", Fastify: "fastify", Hono: "app" })) {
    const code = documented(framework, `src/${framework.toLowerCase()}.ts`);
    t.true(code.includes(`${get}.get("${readinessProbe.httpGet.path}",`), framework);
  }
});

inMatrixSerially(
  "a message stops a process on a system without signals, after its bodies have ended",
  async (t) => {
    const gate = await openGate(t);
    const project = await makeApplication({
      "src/stop.ts": codeUnder("Windows", "src/stop.ts", "production.md"),
      "src/worker.ts": `import { configure } from "lockweave";
import { pay } from "./orders.js";
import "./stop.js";

process.on("message", (message) => process.send?.(\`got \${message}\`));
configure({ redis: process.env.REDIS_URL ?? "", commandTimeout: "1m" });
process.send?.(await pay("A1"));
`,
    });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const env = { ...process.env, REDIS_URL: redis.url, GATE: gate.url };
    const child = fork(project.path("out/worker.js"), { cwd: project.dir, env, execArgv: [] });
    t.teardown(() => child.kill("SIGKILL"));
    const messages: unknown[] = [];
    child.on("message", (message) => messages.push(message));
    const exited = once(child, "exit");
    await until(() => gate.begun === 1);
    child.send("shutdown");
    await until(() => messages.length === 1);
    gate.letOneOut();
    t.deepEqual(await exited, [0, null]);
    t.deepEqual(messages, ["got shutdown", "paid A1"]);
    t.is(await redis.client().exists("LOCK_pay_A1"), 0);
  },
);

test("every command in the docs runs in PowerShell, in cmd, and in any shell of Linux", (t) => {
  const pages = readdirSync(join(PACKAGE, "docs")).filter((name) => name.endsWith(".md"));
  for (const page of pages) {
    const text = readFileSync(join(PACKAGE, "docs", page), "utf8");
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, code = ""]) => code);
    const inline = [...text.matchAll(/`((?:npx|npm|node|docker|fastify) [^`]*)`/g)].map(
      ([, code = ""]) => code,
    );
    for (const command of [...blocks, ...inline]) t.notRegex(command, /#|&&|^\w+=|'|\\$/m, page);
  }
});
