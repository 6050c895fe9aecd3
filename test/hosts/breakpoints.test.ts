import test from "ava";
import { makeProject } from "./project";

// A debugger maps a breakpoint to the emitted code through the source map, and V8 binds it nearby. The bound
// location must be on the requested line.

const ORDER = `import { setTimeout as sleep } from "node:timers/promises";

export class OrderService {
  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
  async pay(orderNo: string, amounts: readonly number[]): Promise<number> {
    let sum = 0; // BODY
    for (const amount of amounts) {
      sum += amount; // BODY
    }
    await sleep(1); // BODY
    if (orderNo === "") {
      throw new Error("no order"); // BODY
    }
    return sum; // BODY
  }

  /** @redisLock businessFlag=payOrder keyName=orderNo reentrant=true */
  async refund(orderNo: string): Promise<string> {
    const note = orderNo.trim(); // BODY
    return note; // BODY
  }
}
`;

const DEBUGGER = `
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { SourceMap } from "node:module";

const session = new Session();
session.connect();
await session.post("Debugger.enable");
await import("./out/order.js");
const emitted = readFileSync("out/order.js", "utf8").split("\\n");
const map = new SourceMap(JSON.parse(readFileSync("out/order.js.map", "utf8")));
const lines = readFileSync("src/order.ts", "utf8").split("\\n");
for (const [asked, line] of lines.entries()) {
  if (!line.includes("// BODY")) continue;
  const place = emitted
    .flatMap((text, lineNumber) => Array.from(text, (_, columnNumber) => ({ lineNumber, columnNumber })))
    .find(({ lineNumber, columnNumber }) => {
      const entry = map.findEntry(lineNumber, columnNumber);
      return entry.originalLine === asked && entry.generatedColumn === columnNumber && entry.generatedLine === lineNumber;
    });
  const { locations } = await session.post("Debugger.setBreakpointByUrl", { urlRegex: "/out/order\\\\.js$", ...place });
  const bound = locations.map(({ lineNumber, columnNumber }) => map.findEntry(lineNumber, columnNumber).originalLine);
  console.log(asked + 1, bound.map((line) => line + 1).join());
}
session.disconnect();
`;

for (const module of ["nodenext", "commonjs"]) {
  test.serial(`a breakpoint on a line of a locked body binds on that line, in ${module}`, async (t) => {
    const moduleSettings =
      module === "commonjs" ? { ignoreDeprecations: "6.0", moduleResolution: "bundler" } : {};
    const project = await makeProject(
      {
        "package.json": JSON.stringify({ type: module === "commonjs" ? "commonjs" : "module" }),
        "src/order.ts": ORDER,
        "debugger.mjs": DEBUGGER,
      },
      { module, types: ["node"], sourceMap: true, ...moduleSettings },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const { stdout, stderr } = await project.run("debugger.mjs");
    const body = ORDER.split("\n").flatMap((line, index) => (line.includes("// BODY") ? [index + 1] : []));
    t.is(body.length, 7);
    t.deepEqual(
      stdout.trimEnd().split("\n"),
      body.map((line) => `${line} ${line}`),
      stderr,
    );
  });
}
