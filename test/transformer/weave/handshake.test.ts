import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** Returns the woven text, or `undefined` if there is nothing to weave. */
function wovenText(text: string): string | undefined {
  return weave("app.ts", text, { ts, module: "esm" })?.code;
}

for (const [description, text, woven] of [
  [
    "imported by its name",
    'import { configure } from "lockweave";\nconfigure({ redis });',
    'import { configure } from "lockweave";\nconfigure({ redis }, "woven");',
  ],
  [
    "imported by another name, from the runtime's own path",
    'import { configure as setUp } from "lockweave/runtime";\nsetUp(options);',
    'import { configure as setUp } from "lockweave/runtime";\nsetUp(options, "woven");',
  ],
  [
    "reached through a namespace",
    'import * as locks from "lockweave";\nlocks.configure({ redis, },);',
    'import * as locks from "lockweave";\nlocks.configure({ redis, }, "woven",);',
  ],
  [
    "called inside a function",
    'import { configure } from "lockweave";\nexport const start = () => configure(pick());',
    'import { configure } from "lockweave";\nexport const start = () => configure(pick(), "woven");',
  ],
  [
    "the default import",
    'import locks from "lockweave";\nlocks.configure({});',
    'import locks from "lockweave";\nlocks.configure({}, "woven");',
  ],
  [
    "destructured from an awaited import",
    'export {};\nconst { configure: setUp } = await import("lockweave");\nsetUp({});',
    'export {};\nconst { configure: setUp } = await import("lockweave");\nsetUp({}, "woven");',
  ],
  [
    "a member of an awaited import",
    'async function f() { const locks = await import("lockweave"); locks.configure({}); (await import("lockweave")).configure({}); }',
    'async function f() { const locks = await import("lockweave"); locks.configure({}, "woven"); (await import("lockweave")).configure({}, "woven"); }',
  ],
  [
    "a call in `then` of a dynamic import",
    'void import("lockweave").then(({ configure }) => configure({}));\nvoid import("lockweave").then((locks) => { locks.configure({}); });',
    'void import("lockweave").then(({ configure }) => configure({}, "woven"));\nvoid import("lockweave").then((locks) => { locks.configure({}, "woven"); });',
  ],
  [
    "required",
    'const { configure } = require("lockweave"); const locks = require("lockweave");\nconfigure({}); locks.configure({}); require("lockweave").configure({});',
    'const { configure } = require("lockweave"); const locks = require("lockweave");\nconfigure({}, "woven"); locks.configure({}, "woven"); require("lockweave").configure({}, "woven");',
  ],
  [
    "required by a function that is only declared here",
    'declare const require: (id: string) => any; declare function configure(): void;\nrequire("lockweave").configure({});',
    'declare const require: (id: string) => any; declare function configure(): void;\nrequire("lockweave").configure({}, "woven");',
  ],
  [
    "under an alias",
    'import * as locks from "lockweave"; import { configure } from "lockweave";\nconst a = configure, b = locks.configure, { configure: c } = locks;\na({}); b({}); c({}); locks["configure"]({}); (0, locks.configure)({}); configure!({});',
    'import * as locks from "lockweave"; import { configure } from "lockweave";\nconst a = configure, b = locks.configure, { configure: c } = locks;\na({}, "woven"); b({}, "woven"); c({}, "woven"); locks["configure"]({}, "woven"); (0, locks.configure)({}, "woven"); configure!({}, "woven");',
  ],
  [
    "called in a file with types of that name",
    'import { configure } from "lockweave";\n{ type configure = string; configure({}); } { interface configure { a: 1 } configure({}); }',
    'import { configure } from "lockweave";\n{ type configure = string; configure({}, "woven"); } { interface configure { a: 1 } configure({}, "woven"); }',
  ],
  [
    "testLocks() with and without options",
    'import { testLocks } from "lockweave/testing";\nconst locks = testLocks(), others = testLocks({ waiting: true });',
    'import { testLocks } from "lockweave/testing";\nconst locks = testLocks(void 0, "woven"), others = testLocks({ waiting: true }, "woven");',
  ],
  [
    "testLocks() of a namespace and of require()",
    'import * as testing from "lockweave/testing";\ntesting.testLocks( /* all */ ); require("lockweave/testing").testLocks();',
    'import * as testing from "lockweave/testing";\ntesting.testLocks( /* all */ void 0, "woven"); require("lockweave/testing").testLocks(void 0, "woven");',
  ],
  [
    "LockModule of NestJS, in a decorator",
    'import { LockModule } from "lockweave/nest";\n@Module({ imports: [LockModule.forRoot({ redis }), LockModule.forRootAsync({ useFactory })] })\nexport class AppModule {}',
    'import { LockModule } from "lockweave/nest";\n@Module({ imports: [LockModule.forRoot({ redis }, "woven"), LockModule.forRootAsync({ useFactory }, "woven")] })\nexport class AppModule {}',
  ],
  [
    "LockModule of NestJS, by other names",
    'import { LockModule as Locks } from "lockweave/nest"; import * as nest from "lockweave/nest";\nLocks["forRoot"]({}); nest.LockModule.forRoot({}); const { forRoot } = Locks; forRoot({}); require("lockweave/nest").LockModule.forRootAsync({});',
    'import { LockModule as Locks } from "lockweave/nest"; import * as nest from "lockweave/nest";\nLocks["forRoot"]({}, "woven"); nest.LockModule.forRoot({}, "woven"); const { forRoot } = Locks; forRoot({}, "woven"); require("lockweave/nest").LockModule.forRootAsync({}, "woven");',
  ],
] as const) {
  test(`a call that configures the runtime says that the build is woven: ${description}`, (t) => {
    t.is(wovenText(text), woven);
    t.is(wovenText(woven), undefined, "a second weave changes nothing");
  });
}

test("a call of configure() says where it is if the host knows a stable name of the file", (t) => {
  const wovenWith = (text: string, path: string | undefined): string | undefined =>
    weave("/home/me/app.ts", text, { ts, module: "esm", pathOf: () => path })?.code;
  const text =
    'import { configure } from "lockweave";\nif (a) configure({ redis }); else configure({ store });';
  t.is(
    wovenWith(text, "my-app/app.ts"),
    'import { configure } from "lockweave";\nif (a) configure({ redis }, "woven", "my-app/app.ts"); else configure({ store }, "woven", "my-app/app.ts#2");',
  );
  t.is(
    wovenWith(`\n${text}`, "my-app/app.ts"),
    `\n${wovenWith(text, "my-app/app.ts")}`,
    "edits above the call do not change its place",
  );
  t.is(wovenWith(text, undefined), text.replaceAll(" })", ' }, "woven")'));
  t.is(
    wovenWith('import { configure } from "lockweave";\nconfigure({});', 'my-app/"\u2028.ts'),
    'import { configure } from "lockweave";\nconfigure({}, "woven", "my-app/\\"\\u2028.ts");',
  );
  t.is(
    wovenWith('import { testLocks } from "lockweave/testing";\ntestLocks();', "my-app/app.ts"),
    'import { testLocks } from "lockweave/testing";\ntestLocks(void 0, "woven");',
  );
});

for (const [description, text] of [
  [
    "configure() of another module",
    'import { configure } from "elsewhere";\nconfigure({});\nimport "lockweave";',
  ],
  [
    "forRoot() of another module of NestJS",
    'import { LockModule } from "lockweave/nest";\nConfigModule.forRoot({}); const imports = [LockModule];',
  ],
  [
    "a file that only imports a type of Lockweave",
    'import { type Configuration } from "lockweave";\ndeclare function configure(options: Configuration): void;\nconfigure({});',
  ],
  [
    "a call that already says that the build is woven",
    'import { configure } from "lockweave";\nconfigure({}, "woven");',
  ],
  [
    "a parameter that hides configure()",
    'import { configure } from "lockweave";\nexport const start = (configure: (options: object) => void) => configure({});',
  ],
  [
    "a variable, a function, a class, and a caught error that hide configure()",
    'import { configure } from "lockweave";\nexport function f() { { let configure = g(); configure({}); } { function configure() {} configure({}); } try { h(); } catch (configure) { configure({}); } for (const configure of [g]) configure({}); }\nexport function k() { if (f) { var configure = g(); } configure({}); }\nexport const l = function configure() { configure({}); };\nexport const m = class configure { n() { configure({}); } };',
  ],
  [
    "an awaited import of another module",
    'const { configure } = await import("elsewhere");\nconfigure({}); import "lockweave";',
  ],
] as const) {
  test(`nothing is woven into ${description}`, (t) => {
    t.is(wovenText(text), undefined);
  });
}

test("a call of a parameter that hides currentLock() is not changed", (t) => {
  const text = `import { currentLock } from "lockweave";
/** @redisLock businessFlag=a */
export async function a(currentLock: () => string) { return currentLock(); }
/** @redisLock businessFlag=b */
export async function b() { const own = (currentLock: () => string) => currentLock(); return own(() => currentLock().key); }`;
  const woven = wovenText(text) ?? "";
  t.is(woven.split("currentLock(lock)").length - 1, 1);
  t.true(woven.includes("own(() => currentLock(lock).key)"));
});

test("a tag and configure() in one file are both woven", (t) => {
  const text = `import { configure } from "lockweave";
configure({ redis });
/** @redisLock businessFlag=a */
export async function a() {}`;
  t.regex(
    wovenText(text) ?? "",
    /^import \* as lockweave .*\nconfigure\(\{ redis \}, "woven"\);\n.*\n.*lockweave\.open\(/,
  );
});

test("a file with only a call of configure() gets no import of the runtime and no name for it", (t) => {
  const woven = weave("app.ts", 'import { configure } from "lockweave";\nconfigure({});', {
    ts,
    module: "esm",
  });
  t.deepEqual([woven?.sites, woven?.namespace], [[], undefined]);
});

test("only the re-exported configure() of a module says that the build is woven, under any import", (t) => {
  const findReExports = new Map([["setUp", "configure"]] as const);
  const woven = (text: string): string | undefined =>
    weave("app.ts", text, {
      ts,
      module: "esm",
      findReExports: (specifier) => (specifier === "./barrel" ? findReExports : undefined),
    })?.code;
  for (const [description, text] of Object.entries({
    "its namespace": `import * as all from "./barrel"; all.configure({}); all.setUp({});`,
    "a member of it": `import * as all from "./barrel"; const { configure, setUp } = all; configure({}); setUp({});`,
    "an awaited import": `const { configure, setUp } = await import("./barrel"); configure({}); setUp({});`,
    "a promised import": `import("./barrel").then((all) => { all.configure({}); all.setUp({}); });`,
    "a required module": `import all = require("./barrel"); all.configure({}); all["setUp"]({});`,
  })) {
    t.is(woven(text), text.replace(/(setUp"?\]?)\(\{\}\)/, '$1({}, "woven")'), description);
  }
});

for (const [description, text] of [
  ["an argument", "boot(«configure», 1); new App(«locks.configure»); new App;"],
  ["a part of an object", "export const all = { «configure», start: «configure», configure: 1 };"],
  ["an element of an array", "export const all = [1, «configure»];"],
  ["the value that a function returns", "export function f() { return «configure»; }"],
  ["the value of an arrow function", "export const f = () => «configure», g = () => { configure; };"],
  ["the value that a generator yields", "export function* f() { yield «configure»; yield; }"],
  [
    "a value that is set later",
    "let start; start = «(configure as any)»; start ??= «configure»; start = start;",
  ],
  ["a default", "export const f = (start = «configure», { go = «configure», to } = {}) => start(go, to);"],
  ["a property of a class", "export class A { start = «configure»; configure; }"],
  [
    "one of two values",
    "(a ? «configure» : «locks.configure»)({}); (a ?? «configure»)({}); («configure» || a)({});",
  ],
  ["the value after a condition", "(configure && «configure»)({}); configure && a;"],
  ["a call by `call` or `bind`", "«configure».call(a, {}); «locks.configure».bind(a)({}); configure.name;"],
  ["a call with a spread", "configure(«...all»); configure({}, ...all);"],
] as const) {
  test(`each use of configure() as a value gets a warning: ${description}`, (t) => {
    const source = `import * as locks from "lockweave"; import { configure } from "lockweave"; const { a, all, boot, App } = x;\n${text}`;
    const plain = source.replaceAll(/[«»]/g, "");
    const woven = weave("app.ts", plain, { ts, module: "esm" });
    const words = woven?.warnings.map(({ start, end }) => plain.slice(start, end));
    t.deepEqual(words, text.match(/(?<=«)[^«»]+(?=»)/g) as unknown as string[]);
    t.deepEqual([...new Set(woven?.warnings.map(({ code }) => code))], ["LW1405"]);
    t.deepEqual(woven?.diagnostics, []);
  });
}

test("a function of another module, a type test, and a re-export of configure() get no warning", (t) => {
  for (const text of [
    'import { configure } from "elsewhere"; boot(configure); import "lockweave";',
    'import { configure } from "lockweave"; export const f = (configure: () => void) => boot(configure);',
    'import { configure } from "lockweave"; if (typeof configure === "function" && !configure) boot(typeof configure);',
    'export { configure } from "lockweave"; export * as locks from "lockweave";',
    'import { configure } from "lockweave"; export { configure as start }; export default configure;',
  ]) {
    t.is(wovenText(text), undefined, text);
  }
});

test("a use of a re-exported configure() as a value gets a warning", (t) => {
  const findReExports = new Map([["setUp", "configure"]] as const);
  const text = 'import { setUp } from "./barrel"; boot(setUp);';
  const woven = weave("app.ts", text, { ts, module: "esm", findReExports: () => findReExports });
  const start = text.lastIndexOf("setUp");
  t.like(woven?.warnings, [{ code: "LW1405", start, end: start + "setUp".length }]);
});
