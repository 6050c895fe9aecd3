import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import test, { type ExecutionContext } from "ava";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { inMatrixSerially, isMatrix } from "../../support/suites";
import { codeUnder } from "../bundlers/recipes";
import { type Project } from "../project";
import { documented, makeApplication } from "./application";

// Bundles the handler of docs/frameworks.md as docs/compilers.md says, and calls it like AWS Lambda, in a process that is frozen between events.

let project: Project;
let redis: RedisServer;
test.before(async () => {
  if (!isMatrix) return;
  redis = await startRedis();
  project = await makeApplication({
    "src/main.ts": documented("AWS Lambda", "src/main.ts"),
    "lambda.config.mjs": codeUnder("esbuild", "lambda.config.mjs"),
    "invoke.mjs": `import { handler } from "./dist/main.mjs";
process.on("message", async (event) => process.send(await handler(event)));
`,
  });
  const checked = await project.tspc("--noEmit");
  if (checked.code !== 0) throw new Error(checked.stdout);
  const built = await project.run("lambda.config.mjs");
  if (built.code !== 0) throw new Error(built.stderr);
});
test.after.always(() => redis?.stop());

function startFunction(t: ExecutionContext): ChildProcess {
  const env = { ...process.env, REDIS_URL: redis.url, GATE: "data:," };
  const child = fork(project.path("invoke.mjs"), { cwd: project.dir, env, execArgv: [] });
  t.teardown(() => child.kill("SIGKILL"));
  return child;
}

/** Sends an event of SQS with these messages. Returns the IDs of those that failed. */
async function invoke(child: ChildProcess, bodies: readonly string[]): Promise<readonly string[]> {
  const attributes = {
    ApproximateReceiveCount: "1",
    SentTimestamp: "1700000000000",
    SenderId: "AIDAIENQZJOLO23YVJ4VO",
    ApproximateFirstReceiveTimestamp: "1700000000001",
  };
  const Records = bodies.map((body, nth) => ({
    messageId: `message-${nth}`,
    receiptHandle: "handle",
    body,
    attributes,
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders",
    awsRegion: "us-east-1",
  }));
  const ended = once(child, "exit").then(() => {
    throw new Error("The process of the function has ended.");
  });
  const answered = once(child, "message") as Promise<[{ batchItemFailures: { itemIdentifier: string }[] }]>;
  child.send({ Records });
  const [{ batchItemFailures }] = await Promise.race([answered, ended]);
  return batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
}

inMatrixSerially(
  "AWS Lambda: the handler returns the messages whose locks another process holds",
  async (t) => {
    const child = startFunction(t);
    await redis.client().set("LOCK_pay_busy", "held by another program", "EX", 600);
    t.deepEqual(await invoke(child, ["A1", "busy", "A2"]), ["message-1"]);
    t.deepEqual(await redis.client().keys("LOCK_*"), ["LOCK_pay_busy"]);
  },
);

inMatrixSerially(
  "AWS Lambda: a frozen process pays again, although Redis closed its connections",
  async (t) => {
    const child = startFunction(t);
    t.deepEqual(await invoke(child, ["A1"]), []);
    child.kill("SIGSTOP");
    const admin = redis.client();
    for (const kind of ["normal", "pubsub"])
      await admin.call("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes");
    child.kill("SIGCONT");
    t.deepEqual(await invoke(child, ["A1"]), []);
  },
);
