import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import {
  EXAMPLE_SCRIPTS,
  EXAMPLES,
  linesOf,
  SCRIPT_ENTRIES,
  expectedLinesOf,
  type Example,
} from "../examples";
import { lockweave } from "../../cli/command";
import { refusalIn } from "../../../runtime/base/unsupported";
import { accepts } from "../../support/accepts";
import { Gate } from "../../support/gate";
import { startRedis } from "../../support/redis-server";
import { Project, type Files, type Finished } from "../project";
import { installLockweave } from "./bundlers";
import { installed, OF_THIS_CHECKOUT } from "../installed";
import { recipe, unwoven } from "./recipes";
import { ORDER, placeIn, RECEIPT, ERRORS_IN_WRONG, WRONG } from "./sources";
import { isMatrix } from "../../support/suites";
import { until } from "../../support/until";

// Heavy, so they run only in the matrix. Serial, because they share an installation.
const inMatrix = isMatrix ? test.serial : test.skip;

const NEXT = "../node_modules/next/dist/bin/next";

const ROUTE = `import { OrderService } from "../../src/order";

export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  const service = new OrderService();
  const paid = await Promise.all([service.pay("A1"), service.pay("A1")]);
  return Response.json({ paid, together: service.together });
}
`;
const playing = (example: Example): string => `import { main } from "../../src/${SCRIPT_ENTRIES[example]}";

export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => void lines.push(line);
  await main().finally(() => (console.log = log));
  return Response.json({ lines });
}
`;
const LAYOUT = `import type { ReactNode } from "react";

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html>
      <body>{children}</body>
    </html>
  );
}
`;
const INSTRUMENTATION = `export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") {
    const { configure, memoryStore } = await import("lockweave");
    configure({ store: memoryStore() });
  }
}
`;
const TSCONFIG = {
  compilerOptions: {
    target: "es2022",
    lib: ["dom", "es2023"],
    module: "esnext",
    moduleResolution: "bundler",
    strict: true,
    skipLibCheck: true,
    jsx: "react-jsx",
    noEmit: true,
    isolatedModules: true,
    plugins: [{ name: "next" }],
  },
  include: ["**/*.ts", "**/*.tsx"],
};

/** Creates the application next to the installed packages, since Turbopack follows no link out of the root. */
async function application(
  order: string,
  { file, text } = recipe("Next.js"),
  others: Files = { "instrumentation.ts": INSTRUMENTATION },
): Promise<Project> {
  withBothRoutes = undefined;
  const project = new Project(join(await installed("next-16"), `../project-${OF_THIS_CHECKOUT}`));
  await rm(project.dir, { recursive: true, force: true });
  await mkdir(project.dir);
  await installLockweave(project);
  await project.write({
    [file]: text,
    "package.json": JSON.stringify({ type: "module", dependencies: { lockweave: "*" } }),
    "tsconfig.json": JSON.stringify(TSCONFIG),
    ...others,
    "app/layout.tsx": LAYOUT,
    "app/pay/route.ts": ROUTE,
    "src/order.ts": order,
    "src/receipt.ts": RECEIPT,
  });
  return project;
}

const KINDS = ["ts", "tsx", "mts", "js", "jsx", "mjs"];

const KINDS_ROUTE = `${KINDS.map((kind) => `import { ${kind} as in_${kind} } from "../../src/in.${kind}";\n`).join("")}import { assertWoven } from "lockweave";
export const dynamic = "force-dynamic";
/** @redisLock businessFlag=route */
async function route() {}
export async function GET() {
  const all = [route, ${KINDS.map((kind) => `in_${kind}`).join(", ")}];
  for (const each of all) assertWoven(each);
  return Response.json({ woven: all.length });
}
`;

/** Its body ends when the gate answers. */
const SLOW_ROUTE = `export const dynamic = "force-dynamic";
/** @redisLock businessFlag=slow */
async function slow() {
  await fetch(process.env.GATE, { cache: "no-store" });
  return "done";
}
export async function GET() {
  return Response.json({ slow: await slow() });
}
`;

interface Built {
  readonly bundler: string;
  readonly project: Project;
  readonly built: Finished;
}

/** The application with the routes of several tests, until another one replaces it. */
let withBothRoutes: Built | undefined;

/** Returns an application for several tests of a bundler, because each build takes long. */
async function applicationWithBothRoutes(
  bundler: string,
  build: (project: Project) => Promise<Finished>,
): Promise<Built> {
  if (withBothRoutes?.bundler === bundler) return withBothRoutes;
  const kinds = KINDS.map((kind) => [
    `src/in.${kind}`,
    `/** @redisLock businessFlag=${kind} */\nexport async function ${kind}() { return "${kind}"; }\n`,
  ]);
  const project = await application(ORDER.replace("./receipt.js", "./receipt"), recipe("Next.js"), {
    "instrumentation.ts": INSTRUMENTATION,
    ...(Object.fromEntries(kinds) as Files),
    "app/kinds/route.js": KINDS_ROUTE,
    "app/slow/route.js": SLOW_ROUTE,
  });
  withBothRoutes = { bundler, project, built: await build(project) };
  return withBothRoutes;
}

/**
 * Starts the application. Returns the route's response and the server's output.
 *
 * @param meanwhile runs after the request was sent
 */
async function answer(
  project: Project,
  route = "pay",
  env: NodeJS.ProcessEnv = {},
  command: readonly string[] = ["start"],
  meanwhile: (server: ChildProcess, url: string) => Promise<void> = async () => {},
): Promise<{ answered: unknown; output: string }> {
  const server = spawn(process.execPath, [NEXT, ...command, "-p", "0"], {
    cwd: project.dir,
    env: { ...process.env, ...env },
  });
  const ended = once(server, "close");
  let output = "";
  const answered = await new Promise<unknown>((resolve) => {
    const listen = (text: string): void => {
      const wasReady = output.includes("Ready in");
      output += text;
      const [url = ""] = /http:\/\/localhost:\d+/.exec(output) ?? [];
      if (wasReady || !output.includes("Ready in")) return;
      fetch(`${url}/${route}`)
        .then((response) => response.json())
        .then(resolve, resolve);
      meanwhile(server, url).catch(resolve);
    };
    server.stdout.setEncoding("utf8").on("data", listen);
    server.stderr.setEncoding("utf8").on("data", listen);
    server.on("close", resolve);
  });
  server.kill();
  await ended;
  return { answered, output };
}

for (const [bundler, ...flags] of [["Turbopack"], ["webpack", "--webpack"]] as const) {
  const build = (project: Project): Promise<Finished> => project.run(NEXT, "build", ...flags);

  inMatrix(`Next.js with ${bundler}: a route runs under its locks`, async (t) => {
    t.timeout(300_000);
    const { project, built } = await applicationWithBothRoutes(bundler, build);
    t.is(built.code, 0, built.stdout + built.stderr);
    const { answered, output } = await answer(project);
    t.deepEqual(answered, { paid: ["paid A1", "paid A1"], together: false }, output);
  });

  inMatrix(`Next.js with ${bundler}: a JavaScript route and its imports are woven`, async (t) => {
    t.timeout(300_000);
    const { project, built } = await applicationWithBothRoutes(bundler, build);
    t.is(built.code, 0, built.stdout + built.stderr);
    const { answered, output } = await answer(project, "kinds");
    t.deepEqual(answered, { woven: KINDS.length + 1 }, output);
  });

  inMatrix(`Next.js with ${bundler}: a server that gets SIGTERM answers all its requests`, async (t) => {
    t.timeout(300_000);
    const { project, built } = await applicationWithBothRoutes(bundler, build);
    t.is(built.code, 0, built.stdout + built.stderr);
    const gate = await Gate.open();
    t.teardown(() => gate.close());
    const terminate = async (server: ChildProcess, url: string): Promise<void> => {
      await until(() => gate.begun === 1);
      server.kill("SIGTERM");
      await until(async () => !(await accepts(Number(new URL(url).port))));
      gate.letOneOut();
    };
    const { answered, output } = await answer(project, "slow", { GATE: gate.url }, ["start"], terminate);
    t.deepEqual(answered, { slow: "done" }, output);
  });

  inMatrix(`Next.js with ${bundler}: both examples behave as when compiled by tspc`, async (t) => {
    t.timeout(300_000);
    const routes = EXAMPLES.map((example) => [`app/${example}/route.ts`, playing(example)]);
    const examples = Object.entries(EXAMPLE_SCRIPTS).map(([file, text]) => [`src/${file}`, text]);
    const project = await application(
      ORDER.replace("./receipt.js", "./receipt"),
      recipe("Next.js"),
      Object.fromEntries([...routes, ...examples]) as Files,
    );
    const { code, stdout, stderr } = await build(project);
    t.is(code, 0, stdout + stderr);
    for (const example of EXAMPLES) {
      const { answered, output } = await answer(project, example);
      const { lines = [] } = answered as { readonly lines?: readonly string[] };
      t.deepEqual(linesOf(lines.join("\n")), await expectedLinesOf(example), output);
    }
  });

  inMatrix(
    `Next.js with ${bundler}: each invalid tag in a file is a build error at its position`,
    async (t) => {
      t.timeout(300_000);
      const { code, stdout, stderr } = await build(await application(WRONG));
      t.not(code, 0);
      for (const words of ERRORS_IN_WRONG) t.true((stdout + stderr).includes(words), stdout + stderr);
    },
  );
}

const EDGE_ROUTE = `import { OrderService } from "../../src/order";

export const runtime = "edge";
export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  return Response.json({ paid: await new OrderService().pay("A1") });
}
`;
/** webpack does not detect that the edge runtime never reaches the import. */
const GUARDED = `export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== "nodejs") return;
  const { configure, memoryStore } = await import("lockweave");
  configure({ store: memoryStore() });
}
`;
const PLAIN_EDGE_ROUTE = `export const runtime = "edge";
export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  return Response.json({ runtime });
}
`;

inMatrix("Next.js with webpack: a locked function in an edge route is a build error", async (t) => {
  t.timeout(300_000);
  const order = ORDER.replace("./receipt.js", "./receipt");
  const files = { "instrumentation.ts": INSTRUMENTATION, "app/edge/route.ts": EDGE_ROUTE };
  const project = await application(order, recipe("Next.js"), files);
  const { code, stdout, stderr } = await project.run(NEXT, "build", "--webpack");
  const output = stdout + stderr;
  t.not(code, 0, output);
  const { line, column } = placeIn(order, "@redisLock");
  const place = `src/order.ts(${line},${column}): error LW1409: \`OrderService.pay\``;
  t.true(output.includes(`${place} is in a build that runs in an edge runtime.`), output);
});

inMatrix(
  "Next.js with Turbopack: a locked function in an edge route fails the build with the runtime's error",
  async (t) => {
    t.timeout(300_000);
    const files = { "instrumentation.ts": INSTRUMENTATION, "app/edge/route.ts": EDGE_ROUTE };
    const project = await application(ORDER.replace("./receipt.js", "./receipt"), recipe("Next.js"), files);
    const { code, stdout, stderr } = await project.run(NEXT, "build");
    t.not(code, 0);
    t.true((stdout + stderr).includes(refusalIn("edge")), stdout + stderr);
  },
);

const ACTION = `"use server";

/** @redisLock businessFlag=act */
export async function act(): Promise<void> {}
`;
const PAGE = `"use client";
import { act } from "./act";

export default function Page() {
  return <button onClick={() => void act()}>Act</button>;
}
`;

for (const [bundler, ...flags] of [["Turbopack"], ["webpack", "--webpack"]] as const) {
  inMatrix(
    `Next.js with ${bundler}: server locks next to edge routes and client components are not an error`,
    async (t) => {
      t.timeout(300_000);
      const project = await application(ORDER.replace("./receipt.js", "./receipt"), recipe("Next.js"), {
        "instrumentation.ts": GUARDED,
        "app/edge/route.ts": PLAIN_EDGE_ROUTE,
        "app/act.ts": ACTION,
        "app/page.tsx": PAGE,
      });
      const { code, stdout, stderr } = await project.run(NEXT, "build", ...flags);
      t.is(code, 0, stdout + stderr);
      t.like(await answer(project, "edge"), { answered: { runtime: "edge" } });
      t.like(await answer(project), { answered: { paid: ["paid A1", "paid A1"], together: false } });
    },
  );
}

inMatrix("Next.js: an application built without the plugin does not start", async (t) => {
  t.timeout(300_000);
  const { file, text } = unwoven(recipe("Next.js"));
  const project = await application(ORDER.replace("./receipt.js", "./receipt"), {
    file,
    text: text.replace('"lockweave/loader"', ""),
  });
  t.like(await project.run(NEXT, "build"), { code: 0 });
  const { output } = await answer(project);
  t.regex(output, /This build was not woven/);
});

/** The files as `npx create-next-app` creates them. */
const STARTED: Files = {
  "next.config.ts": `import type { NextConfig } from "next";

const nextConfig: NextConfig = {
  /* config options here */
};

export default nextConfig;
`,
  "package.json": JSON.stringify({
    scripts: { dev: "next dev", build: "next build", start: "next start" },
    dependencies: { lockweave: "*", ioredis: "*", next: "16.4.6", react: "19.2.0", "react-dom": "19.2.0" },
    devDependencies: { typescript: "^5", "@types/node": "^20", "@types/react": "^19" },
  }),
};

inMatrix(
  "Next.js: an application set up by init runs under its locks on the Redis from REDIS_URL",
  async (t) => {
    t.timeout(300_000);
    const redis = await startRedis();
    t.teardown(() => redis.stop());
    const project = await application(
      ORDER.replace("./receipt.js", "./receipt"),
      { file: "next-env.d.ts", text: "" },
      STARTED,
    );
    await cp(await installed("ioredis-6"), project.path("node_modules"), { recursive: true });
    const set = await lockweave(project, "init", "--yes");
    t.is(set.code, 0, set.stdout + set.stderr);
    const { code, stdout, stderr } = await project.run(NEXT, "build");
    t.is(code, 0, stdout + stderr);
    const { answered, output } = await answer(project, "pay", { REDIS_URL: redis.url });
    t.deepEqual(answered, { paid: ["paid A1", "paid A1"], together: false }, output);
  },
);

/** Prints the error to the console, where Next.js maps the stack to the sources. */
const FAILING = `import { OrderService } from "../../src/order";

export const dynamic = "force-dynamic";

export async function GET(): Promise<Response> {
  await new OrderService().pay("none").catch((error) => console.error("said", error));
  return Response.json({});
}
`;
/** The settings for source maps in docs/compilers.md. */
const MAPPED = {
  text: "export default {\n  experimental: { serverSourceMaps: true },",
  env: { NODE_OPTIONS: "--enable-source-maps" },
};

for (const [bundler, ...flags] of [["Turbopack"], ["webpack", "--webpack"]] as const) {
  inMatrix(
    `Next.js with ${bundler}: stack traces show source lines, in development and in a build`,
    async (t) => {
      t.timeout(300_000);
      const { file, text } = recipe("Next.js");
      const project = await application(
        ORDER.replace("./receipt.js", "./receipt"),
        { file, text: text.replace("export default {", MAPPED.text) },
        { "instrumentation.ts": INSTRUMENTATION, "app/failing/route.ts": FAILING },
      );
      const inSource = new RegExp(
        `pay \\((?:webpack:///)?src/order\\.ts:${placeIn(ORDER, "return this.refuse").line}:`,
      );
      const developed = await answer(project, "failing", {}, ["dev", ...flags]);
      t.regex(developed.output, inSource);
      await rm(project.path(".next"), { recursive: true });
      const { code, stdout, stderr } = await project.run(NEXT, "build", ...flags);
      t.is(code, 0, stdout + stderr);
      const { output } = await answer(project, "failing", MAPPED.env);
      t.regex(output, inSource);
    },
  );
}
