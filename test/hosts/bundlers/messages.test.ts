import test from "ava";
import { build } from "esbuild";
import ofEsbuild = require("../../../transformer/hosts/bundlers/esbuild");
import asLoader = require("../../../transformer/hosts/bundlers/loader");
import ofRollup = require("../../../transformer/hosts/bundlers/rollup");
import { makeProject } from "../project";

// The errors and warnings that the plugins pass to their hosts. bundlers.test.ts tests how the hosts print them.

const PAY = `/**
\t * @redisLock businessFlag=pay keyNmae=id
 */
export async function pay(id: string): Promise<string> {
  return id;
}

/** @redisLock businessFlag=refund lockTime=30000 */
export async function refund(): Promise<void> {}
`;
const WRONG = "There is no attribute `keyNmae`. Did you mean `keyName`?";

test("Rollup, Rolldown, and Vite receive the position and a code frame with marks", (t) => {
  interface Log {
    readonly message: string;
    readonly loc: { readonly line: number; readonly column: number };
    readonly frame: string;
  }
  const logs: Log[] = [];
  const context = {
    warn: (log: Log) => void logs.push(log),
    error: (log: Log): never => {
      logs.push(log);
      throw new Error(log.message);
    },
  };
  const { transform } = ofRollup();
  t.throws(() => transform.handler.call(context, PAY, "/app/src/pay.ts"), {
    message: /pay\.ts\(2,33\): error LW1002: /,
  });
  const [warning, error] = logs;
  t.regex(warning?.message ?? "", /pay\.ts\(8,45\): warning LW\d{4}: .*lockTime/);
  t.like(error?.loc, { line: 2, column: 32 });
  t.is(
    error?.frame,
    `2 | \t * @redisLock businessFlag=pay keyNmae=id
  | \t                               ^^^^^^^`,
  );
});

test("tags that another plugin lost when it loaded the file are errors in Rollup, Rolldown, and Vite", async (t) => {
  const project = await makeProject({ "src/pay.ts": PAY.replace("keyNmae", "keyName") });
  const errorsOf = (text: string, file = "src/pay.ts"): string[] => {
    const messages: string[] = [];
    const context = {
      warn: () => {},
      error: ({ message }: { readonly message: string }): never => {
        messages.push(...message.split("\n"));
        throw new Error(message);
      },
    };
    try {
      ofRollup().transform.handler.call(context, text, project.path(file));
    } catch {
      // The host stops here.
    }
    return messages;
  };
  const stripped = "export async function pay(id) { return id; }\nexport async function refund() {}\n";
  for (const text of [
    stripped,
    `import "@shared/db";\nimport "@redis/client";\n${stripped}`,
    stripped.padEnd(PAY.length), // As long as the text on disk.
    "exports.pay = async function (id) { return id; }; const refund = () => __async(function* () {});",
    "class A { pay(id) { return Promise.resolve(id); } } var B = { refund() {} };",
  ]) {
    const [pay, refund, ...others] = errorsOf(text);
    t.regex(pay ?? "", /pay\.ts\(2,5\): error LW1404: `pay` would run without its lock\. .*Fix: /, text);
    t.regex(refund ?? "", /pay\.ts\(8,5\): error LW1404: `refund` /, text);
    t.deepEqual(others, []);
  }
  t.is(errorsOf(`/** @redisLock businessFlag=pay */ ${stripped}`).length, 1, "one of two tags is left");
  t.is(errorsOf(stripped, "src/pay.ts?part").length, 2);
  t.deepEqual(errorsOf("export {};"), [], "a stand-in for a browser");
  t.deepEqual(errorsOf("export const pay = call('pay'), refund = call('refund');"), [], "another stand-in");
  const worker = "export default function Wrapper() { return new Worker('/pay.js'); }";
  t.deepEqual(errorsOf(worker, "src/pay.ts?worker"), []);
  t.deepEqual(errorsOf("export async function pay() {}", "src/none.ts"), []);
});

test("esbuild receives errors, warnings, and the woven text with its source map", async (t) => {
  const project = await makeProject({ "src/pay.ts": PAY, "src/good.ts": PAY.replace("keyNmae", "keyName") });
  const bundled = (file: string): ReturnType<typeof build> =>
    build({
      entryPoints: [project.path(file)],
      absWorkingDir: project.dir,
      plugins: [ofEsbuild()],
      sourcemap: "inline",
      write: false,
      logLevel: "silent",
    });
  const { errors } = (await bundled("src/pay.ts").catch((error: unknown) => error)) as {
    errors: { text: string; location: object }[];
  };
  t.like(errors, [{ text: `LW1002: ${WRONG}`, location: { file: "src/pay.ts", line: 2, column: 32 } }]);
  const { outputFiles = [], warnings } = await bundled("src/good.ts");
  t.regex(outputFiles[0]?.text ?? "", /lockweave\.acquire\(/);
  const [, map = ""] = /base64,(\S+)/.exec(outputFiles[0]?.text ?? "") ?? [];
  const { sources, sourcesContent } = JSON.parse(Buffer.from(map, "base64").toString()) as {
    sources: string[];
    sourcesContent: string[];
  };
  t.regex(sources[0] ?? "", /(?:^|\/)good\.ts$/);
  t.deepEqual(sourcesContent, [await project.read("src/good.ts")]);
  t.regex(warnings[0]?.text ?? "", /^LW\d{4}: .*lockTime/);
});

test("webpack, Rspack, and Turbopack receive errors, warnings, and the text despite errors", (t) => {
  const calls: string[] = [];
  asLoader.call(
    {
      resource: "/app/src/pay.ts",
      resourcePath: "/app/src/pay.ts",
      getOptions: () => ({}),
      callback: (error, text) => calls.push(String(error), text?.match(/refuses to run unlocked/)?.[0] ?? ""),
      emitError: ({ message }) => calls.push(message),
      emitWarning: ({ message }) => calls.push(message),
    },
    PAY,
  );
  const [error = "", warning = "", ...rest] = calls;
  t.true(error.endsWith(`pay.ts(2,33): error LW1002: ${WRONG}`), error);
  t.regex(warning, /pay\.ts\(8,45\): warning LW\d{4}: .*lockTime/);
  t.deepEqual(rest, ["null", "refuses to run unlocked"]);
});
