import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import test, { type ExecutionContext } from "ava";
import { startRedis, type RedisServer } from "../support/redis-server";
import { isMatrix, inMatrix } from "../support/suites";
import { until } from "../support/until";
import { codeUnder } from "./bundlers/recipes";
import type { SetName } from "./installed";
import { linkPackages } from "./link";
import { makeProject, type Files, type Project } from "./project";

// Runs the recipes of docs/schedules.md with the real schedulers, on two machines whose clocks differ. Each recipe fires every second, and
// its job ends immediately, before the other machine asks.

let server: RedisServer;
test.before(async () => {
  if (isMatrix) server = await startRedis();
});
test.after.always(() => server?.stop());

interface Recipe {
  readonly set?: SetName;
  readonly heading: string;
  readonly file: string;
  readonly files?: Files;
  readonly main?: string;
}

const NEST_MAIN = `import "reflect-metadata";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ScheduleModule } from "@nestjs/schedule";
import { configure } from "lockweave";
import { ReportsService } from "./reports.service.js";

@Module({ imports: [ScheduleModule.forRoot()], providers: [ReportsService] })
class AppModule {}

configure({ redis: "redis://localhost:6379" });
await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
`;

/** The recipes with one lock for all firings of a job. */
const ONE_LOCK: Readonly<Record<string, Recipe>> = {
  "@nestjs/schedule": {
    set: "nest-12-schedule",
    heading: "NestJS schedule",
    file: "src/reports.service.ts",
    files: { "src/main.ts": NEST_MAIN },
    main: "out/main.js",
  },
  cron: { set: "cron", heading: "cron", file: "src/cron.ts" },
  croner: { set: "croner", heading: "croner", file: "src/croner.ts" },
  "toad-scheduler": {
    set: "toad-scheduler",
    heading: "toad-scheduler",
    file: "src/toad-scheduler.ts",
  },
};

/** The recipes with one lock for each firing. */
const LOCK_FOR_EACH: Readonly<Record<string, Recipe>> = {
  "node-cron": { set: "node-cron", heading: "node-cron", file: "src/node-cron.ts" },
  "croner, with a key for each firing": {
    set: "croner",
    heading: "A lock for each firing",
    file: "src/every-five-seconds.ts",
  },
};

/** Prints what happens to locks, and sets the clock by which schedulers go. */
const MACHINE = `import { subscribe } from "node:diagnostics_channel";
const skew = Number(process.env.SKEW_MS);
const Real = Date;
globalThis.Date = class extends Real {
  constructor(...args) {
    if (args.length === 0) super(Real.now() + skew);
    else super(...args);
  }
  static now() {
    return Real.now() + skew;
  }
};
for (const end of ["grant", "give-up"]) subscribe("lockweave:" + end, ({ key }) => console.log(end, key));
`;

const REDIS = '"redis://localhost:6379"';
const NEVER = /"(?:0 3 \* \* \*|\*\/5 \* \* \* \* \*)"/g;

/** Makes the recipe fire each second. Its key lasts longer than the test. */
function eachSecond(text: string): string {
  return text
    .replaceAll(NEVER, '"* * * * * *"')
    .replaceAll("5_000", "1_000")
    .replaceAll("lockAtLeast=1m", "lockAtLeast=10m")
    .replaceAll("lockTime=1m", "lockTime=10m")
    .replaceAll("distributedLease: 60_000", "distributedLease: 600_000")
    .replaceAll(REDIS, 'process.env["REDIS_URL"] ?? "", commandTimeout: "1m"');
}

async function projectOf({ set, heading, file, files = {} }: Recipe): Promise<Project> {
  const text = codeUnder(heading, file, "schedules.md");
  const all: Files = {
    [file]: text,
    "src/reports.ts": 'export function writeReport(): void {\n  console.log("runs");\n}\n',
    "src/mails.ts": 'export function sendMails(): void {\n  console.log("runs");\n}\n',
    ...files,
  };
  const project = await makeProject(
    {
      ...Object.fromEntries(Object.entries(all).map(([name, code]) => [name, eachSecond(code)])),
      "machine.mjs": MACHINE,
    },
    { types: ["node"], experimentalDecorators: true, emitDecoratorMetadata: true },
  );
  await linkPackages(project, set === undefined ? [] : [set], ["ioredis"]);
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
  return project;
}

/** A process whose clock differs from that of other machines. */
class Machine {
  readonly lines: string[] = [];
  #complaints = "";
  readonly #child;
  readonly #closed: Promise<unknown>;

  constructor(project: Project, main: string, skewMs: number, url: string) {
    this.#child = spawn(process.execPath, ["--import", "./machine.mjs", main], {
      cwd: project.dir,
      env: { ...process.env, SKEW_MS: String(skewMs), REDIS_URL: url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#closed = once(this.#child, "close");
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.lines.push(line));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#complaints += text));
  }

  /** The keys of all firings that asked for a lock and have their answer. */
  get answers(): readonly string[] {
    return this.lines.filter((line) => line !== "runs").map((line) => line.split(" ").at(-1) ?? "");
  }

  /** Throws if it has ended. */
  assertRuns(): void {
    if (this.#child.exitCode !== null) throw new Error(this.lines.join("\n") + this.#complaints);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }
}

const SKEW_MS = 650;

/** Starts two machines, and ends them when `isEnough`. Returns the lines of both. */
async function runOnTwo(
  t: ExecutionContext,
  recipe: Recipe,
  isEnough: (machines: readonly Machine[], lines: readonly string[]) => boolean,
): Promise<readonly string[]> {
  const project = await projectOf(recipe);
  const { file, main = file.replace("src/", "out/").replace(".ts", ".js") } = recipe;
  const own = await startRedis();
  t.teardown(() => own.stop());
  const machines = [0, SKEW_MS].map((skewMs) => new Machine(project, main, skewMs, own.url));
  t.teardown(async () => {
    for (const each of machines) await each.kill();
  });
  const lines = (): readonly string[] => machines.flatMap((each) => each.lines);
  await until(() => {
    for (const each of machines) each.assertRuns();
    return isEnough(machines, lines());
  });
  return lines();
}

const FIRINGS = 3;

for (const [scheduler, recipe] of Object.entries(ONE_LOCK)) {
  inMatrix(
    `${scheduler}: only one machine runs a job that is shorter than the difference between the clocks`,
    async (t) => {
      const lines = await runOnTwo(
        t,
        recipe,
        (machines, all) => machines.every(({ answers }) => answers.length >= FIRINGS) && all.includes("runs"),
      );
      t.is(lines.filter((line) => line === "runs").length, 1, lines.join("\n"));
      t.is(lines.filter((line) => line === "grant LOCK_nightlyReport").length, 1, lines.join("\n"));
    },
  );
}

for (const [scheduler, recipe] of Object.entries(LOCK_FOR_EACH)) {
  inMatrix(`${scheduler}: exactly one machine runs each firing`, async (t) => {
    const sharedBy = ([first, second]: readonly Machine[]): readonly string[] =>
      first?.answers.filter((key) => second?.answers.includes(key)) ?? [];
    let shared: readonly string[] = [];
    const lines = await runOnTwo(t, recipe, (machines, all) => {
      shared = sharedBy(machines);
      return shared.length >= FIRINGS && all.filter((line) => line === "runs").length >= FIRINGS;
    });
    for (const key of shared) {
      t.is(lines.filter((line) => line === `grant ${key}`).length, 1, `${key}\n${lines.join("\n")}`);
    }
  });
}

const JOB: Recipe = { heading: "Kubernetes", file: "src/nightly-report.ts" };

inMatrix("Kubernetes: one pod runs each Job, and a Job without a name fails", async (t) => {
  const project = await projectOf(JOB);
  const run = async (job: string | undefined): Promise<string> => {
    const name = job === undefined ? {} : { JOB_NAME: job };
    const env = { SKEW_MS: "0", REDIS_URL: server.url, ...name };
    const variables = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const { code, stdout, stderr } = await project.runWith(
      "/usr/bin/env",
      ...variables,
      process.execPath,
      "out/nightly-report.js",
    );
    return code === 0 ? stdout : (/code: '(\w+)'/.exec(stderr)?.[1] ?? stderr);
  };
  const [first, second] = ["nightly-29470980", "nightly-29472420"] as const;
  const pods = await Promise.all([run(first), run(first), run(first)]);
  t.deepEqual(pods.toSorted(), ["", "", "runs\n"]);
  t.is(await run(first), "", "a pod that starts after the job has ended");
  t.is(await run(second), "runs\n");
  t.is(await run(undefined), "LOCK_BAD_KEY");
});
