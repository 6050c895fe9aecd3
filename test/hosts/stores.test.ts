import test from "ava";
import { lockweave } from "../cli/command";
import { makeProject, PLUGIN } from "./project";

// Missing stores that tags name are reported before any tagged function is called.

const FILES = {
  "package.json": "{}",
  "src/orders.ts": `export class Orders {
  /** @redisLock businessFlag=pay keyName=no */
  async pay(no: string): Promise<string> { return no; }
  /** @redisLock businessFlag=book keyName=no store=default */
  async book(no: string): Promise<string> { return no; }
}
`,
  "src/late.ts": `import { withLock } from "lockweave";
export const byHand = withLock;
/** @redisLock businessFlag=late store=ledger */
export const late = async (): Promise<string> => "late";
`,
  "src/configured.ts": `import { configure, memoryStore } from "lockweave";
import { Orders } from "./orders.js";
declare const console: { log(...values: unknown[]): void };
configure({ store: memoryStore(), stores: { payments: memoryStore() } });
void (async () => {
  console.log(await new Orders().pay("1"), await new Orders().book("1"));
  await import("./late.js").then(() => console.log("loaded"), (error: Error) => console.log(error.message));
})();
`,
  "src/forgotten.ts": `import { configure, memoryStore } from "lockweave";
import { Orders } from "./orders.js";
declare const console: { log(...values: unknown[]): void };
console.log(typeof Orders);
configure({ store: memoryStore() });
console.log("started");
`,
};

const DEFAULTS = { ...PLUGIN, defaults: { store: "payments" } };

test("a store that tags name but configure() does not fails the application at startup, and a lazy module on load", async (t) => {
  const project = await makeProject(FILES, { plugins: [DEFAULTS] });
  const built = await project.tspc();
  t.is(built.code, 0, built.stdout);

  const forgotten = await project.run("out/forgotten.js");
  t.is(forgotten.code, 1);
  t.is(forgotten.stdout, "function\n");
  t.regex(
    forgotten.stderr,
    /LockMisconfiguredError: There is no store `payments`, which Orders\.pay uses: configure\(\) has only `default`\. Fix: call configure\(\{ \.\.\., stores: \{ payments: "redis:\/\/\.\.\." \} \}\)/,
  );

  const configured = await project.run("out/configured.js");
  t.is(
    configured.stdout,
    '1 1\nThere is no store `ledger`, which late uses: configure() has only `default`, `payments`. Fix: call configure({ ..., stores: { ledger: "redis://..." } })\n',
  );

  const check = await lockweave(project, "check");
  t.is(check.code, 0, check.stdout);
  t.regex(
    check.stderr,
    /^src\/late\.ts:3:5: warning: LW1113: There is no store `ledger`\. The sources configure only `default`, `payments`, so/,
  );
  t.is((check.stderr.match(/LW1113/g) ?? []).length, 1);

  const list = await lockweave(project, "list");
  t.regex(list.stdout, /^src\/orders\.ts:2 +Orders\.pay +LOCK_pay_\{no\} +store=payments$/m);
  t.regex(list.stdout, /^src\/orders\.ts:4 +Orders\.book +LOCK_book_\{no\} +store=default$/m);
});

test("the check reports no missing store if the sources do not list all stores", async (t) => {
  const spread = FILES["src/configured.ts"].replace("{ payments: memoryStore() }", "{ ...others }");
  const project = await makeProject(FILES, { plugins: [DEFAULTS] });
  const check = async (): Promise<string> =>
    (await lockweave(project, "check", "--output", "src/*.ts")).stderr;
  const warning = (await check()).split("\n")[0] ?? "";
  t.regex(warning, /^src\/late\.ts:3:5: warning: LW1113: /);
  await project.write({ "src/configured.ts": `${spread}const others = {};\n` });
  const rest = await check();
  t.regex(rest, /^src\/late\.ts:3:5: Cannot verify the lock of `late`: /);
  t.false(rest.includes("LW1113"));
});
