import test from "ava";
import { makeProject, PLUGIN, type Project } from "../project";
import { TsServer, type Range } from "./tsserver";

/** The one entry that serves the compiler and the editor. */
const ENTRY = { name: "lockweave/language-service", ...PLUGIN, defaults: { lockTime: "20s" } };

let project: Project;
let server: TsServer;

test.before(async () => {
  project = await makeProject(
    { "src/orders.ts": "export {};\n" },
    { plugins: [ENTRY], noUnusedParameters: true },
  );
  server = new TsServer(project);
  await server.open("src/orders.ts");
});

test.after.always(() => server.stop());

interface Diagnostic extends Range {
  readonly text: string;
  readonly code: number;
  readonly category: string;
  readonly source?: string;
}

async function errorsOf(file: string): Promise<readonly Diagnostic[]> {
  return await server.ask<Diagnostic[]>("semanticDiagnosticsSync", { file: server.path(file) });
}

test.serial("a wrong tag is an error at the word and in the words of tspc, as it is typed", async (t) => {
  const wrong = `/** @redisLock businessFlag=pay keyName=orderNO */
export async function pay(orderNo: string): Promise<string> { return orderNo; }
`;
  await server.open("src/orders.ts", wrong);
  const [error, ...others] = await errorsOf("src/orders.ts");
  t.like(error, {
    text: "LW1202: The function has no parameter `orderNO`. Did you mean `orderNo`?",
    code: 901_202,
    category: "error",
    source: "lockweave",
  });
  t.is(error && server.textOf("src/orders.ts", error), "orderNO");
  t.deepEqual(others, []);
  await server.open("src/orders.ts", wrong.replace("orderNO", "orderNo"));
  t.deepEqual(await errorsOf("src/orders.ts"), []);
});
