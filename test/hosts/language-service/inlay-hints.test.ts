import test from "ava";
import ts from "typescript";
import { makeProject, PLUGIN } from "../project";
import { Editor, type Settings } from "./in-process";
import { TsServer, type Place } from "./tsserver";

/** Returns the file's text with the hints in it, each in angle brackets. */
function withHints(
  text: string,
  settings: Settings = {},
  others: Readonly<Record<string, string>> = {},
): string {
  const editor = new Editor({ "pay.ts": text, ...others }, settings);
  const hints = editor.service.provideInlayHints(
    editor.pathOf("pay.ts"),
    { start: 0, length: text.length },
    {},
  );
  return hints
    .toSorted((a, b) => b.position - a.position)
    .reduce((shown, hint) => {
      const [before, after] = [hint.whitespaceBefore, hint.whitespaceAfter].map((pad) => (pad ? " " : ""));
      const inserted = `${before}<${hint.text}>${after}`;
      return shown.slice(0, hint.position) + inserted + shown.slice(hint.position);
    }, text);
}

test("a hint before each locked body shows its key, its lock time, and how many may hold it", (t) => {
  const text = `class Shop {
  /** @redisLock businessFlag=payOrder keyName=orderNo */
  async pay(orderNo: string): Promise<void> {}
  /** @redisLock businessFlag=stock keyName=a,b each=true lockTime=500ms */
  static async both(a: string, b: string){ return a + b; }
  /** @redisLock key="mutex:\${id}" lockTime=2m permits=3 */
  arrow = async (id: string) => id;
  /** @redisLock businessFlag=report mode=read lockTime="\${config.lockTime}" */
  async report() {}
  /** @needsLock businessFlag=payOrder keyName=orderNo */
  async post(orderNo: string): Promise<void> {}
  /** @redisLock businessFlag=wrong keyName=missing */
  async wrong(): Promise<void> {}
}
declare const config: { lockTime: number };
/** @redisLock businessFlag=rows */
export default async function* () { yield 1; }
`;
  const lines = text.split("\n");
  t.deepEqual(
    withHints(text)
      .split("\n")
      .filter((line) => !lines.includes(line)),
    [
      "  async pay(orderNo: string): Promise<void> <🔒 LOCK_payOrder_{orderNo}, 30 s> {}",
      "  static async both(a: string, b: string) <🔒 LOCK_stock_{a} LOCK_stock_{b}, 500 ms> { return a + b; }",
      "  arrow = async (id: string) => <🔒 mutex:{id}, 2 min, permits=3> id;",
      "  async report() <🔒 LOCK_report, {config.lockTime}, mode=read> {}",
      "  async post(orderNo: string): Promise<void> <🔒 needs LOCK_payOrder_{orderNo}> {}",
      "export default async function* () <🔒 LOCK_rows, 30 s> { yield 1; }",
    ],
  );
});

const TICK = "/** @redisLock businessFlag=tick */\nexport async function tick() {}\n";

test("a hint shows the project's lock time, and none if a source sets another one at startup", (t) => {
  t.regex(withHints(TICK, { entry: { defaults: { lockTime: "1m" } } }), /<🔒 LOCK_tick, 1 min>/);
  const main = `import { configure } from "lockweave";
configure({ store: "redis://localhost", defaults: { lockTime: "5s" } });
`;
  t.regex(withHints(TICK, {}, { "main.ts": main }), /<🔒 LOCK_tick>/);
  t.regex(withHints(TICK, {}, { "main.ts": main.replace("lockTime", "waitTime") }), /<🔒 LOCK_tick, 30 s>/);
});

test("the plugin's option turns hints off, and only hints in the requested range are returned", (t) => {
  t.is(withHints(TICK, { entry: { inlayHints: false } }), TICK);
  const transformer = { transform: "lockweave/transformer", inlayHints: false };
  t.is(withHints(TICK, { plugins: [{ name: "lockweave/language-service" }, transformer] }), TICK);
  const editor = new Editor({ "pay.ts": TICK });
  const at = (start: number, length: number): number =>
    editor.service.provideInlayHints(editor.pathOf("pay.ts"), { start, length }, {}).length;
  const body = TICK.indexOf("{}");
  t.deepEqual([at(0, body - 1), at(0, body), at(body, 0), at(body + 1, 5)], [0, 1, 1, 0]);
});

test("TypeScript's own hints stay unchanged, even if ours fail", (t) => {
  const text = `${TICK}declare function f(name: string): void;\nf("a");\n`;
  const editor = new Editor({ "pay.ts": text });
  const preferences: ts.UserPreferences = { includeInlayParameterNameHints: "all" };
  const hints = (service: ts.LanguageService): readonly ts.InlayHint[] =>
    service.provideInlayHints(editor.pathOf("pay.ts"), { start: 0, length: text.length }, preferences);
  const own = hints(editor.plain);
  t.is(own.length, 1);
  t.deepEqual(hints(editor.service).slice(0, 1), own);
  t.is(hints(editor.service).length, 2);

  const broken = {
    get defaults() {
      throw new Error("broken");
    },
  };
  const failing = new Editor({ "pay.ts": text }, { entry: broken, plugins: [] });
  t.deepEqual(hints(failing.service), own);
});

interface InlayHint {
  readonly text: string;
  readonly position: Place;
}

test.serial(
  "a real server sends the hints of a file, and none if the plugin's entry turns them off",
  async (t) => {
    t.timeout(300_000);
    const text = `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string): Promise<void> {}
`;
    for (const options of [{}, { inlayHints: false }]) {
      const entry = { name: "lockweave/language-service", ...PLUGIN, ...options };
      const project = await makeProject({ "src/pay.ts": text }, { plugins: [entry] });
      const server = new TsServer(project);
      try {
        await server.open("src/pay.ts");
        const range = { file: server.path("src/pay.ts"), start: 0, length: text.length };
        const hints = await server.ask<readonly InlayHint[]>("provideInlayHints", range);
        const hint = { text: "🔒 LOCK_payOrder_{orderNo}, 30 s", position: server.at("src/pay.ts", "{}") };
        t.is(hints.length, "inlayHints" in options ? 0 : 1);
        if (!("inlayHints" in options)) t.like(hints[0], hint);
        const { code, stdout } = await project.tspc("--noEmit");
        t.deepEqual([code, stdout], [0, ""]);
      } finally {
        await server.stop();
      }
    }
  },
);
