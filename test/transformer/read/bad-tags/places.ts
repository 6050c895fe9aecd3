import { onMethod, type Row } from "./row";

// The problems `LW13..`.

const ELSEWHERE = (what: string): string =>
  `\`@redisLock\` locks functions, but this is ${what}. The function is declared elsewhere, and would run unlocked. Fix: put the tag on its declaration.`;
const NO_FUNCTION = (what: string): string =>
  `\`@redisLock\` locks functions, but this is ${what}. Fix: move the tag to a function, or remove it.`;
const DANGLING = "There is nothing to lock after this `@redisLock`. Fix: put it directly before a function.";

const TAG = "/** «@redisLock» businessFlag=pay */";
const ACCESSOR = "An accessor cannot wait for a lock. Fix: put `@redisLock` on an async method.";
const SEVERAL =
  "`@redisLock` before several variables is ambiguous. Fix: declare the function in a statement of its own.";
const GENERATOR = "A synchronous generator cannot wait for a lock. Fix: make it an `async` generator.";
const REENTRANT_GENERATOR =
  "A generator cannot be `reentrant`, because its body cannot become a separate function. Fix: write `reentrant=false`.";
const noBody = (what: string): string =>
  `${what} has no body to lock. Fix: put \`@redisLock\` on the implementation.`;
const notAsync = (name: string): string =>
  `\`${name}\` cannot wait for a lock. Fix: make it \`async\`, or give it the return type \`Promise<...>\`.`;

export const PLACES: readonly Row[] = [
  {
    title: "a class",
    source: `${TAG}\nexport class OrderService { async pay() {} }`,
    code: "LW1301",
    message: NO_FUNCTION("a class declaration"),
  },
  {
    title: "a number",
    source: `${TAG}\nexport const pay = 5;`,
    code: "LW1301",
    message: NO_FUNCTION("a numeric literal"),
    bodiless: true,
  },
  {
    title: "a variable without a value",
    source: `${TAG}\nexport let pay: () => Promise<void>;`,
    code: "LW1301",
    message: NO_FUNCTION("a variable declaration"),
    bodiless: true,
  },
  {
    title: "a wrapped function expression",
    source: `${TAG}\nexport const pay = memoize(async () => work());`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  {
    title: "an object of functions",
    source: `${TAG}\nexport const orders = { async pay() {} };`,
    code: "LW1301",
    message: NO_FUNCTION("an object literal expression"),
  },
  {
    title: "a property without a value",
    source: `export class A { ${TAG} pay: unknown; }`,
    code: "LW1301",
    message: NO_FUNCTION("a property declaration"),
    bodiless: true,
  },
  {
    title: "a shorthand property",
    source: `export const a = { ${TAG} pay };`,
    code: "LW1301",
    message: ELSEWHERE("a shorthand property assignment"),
    bodiless: true,
  },
  {
    title: "a parameter",
    source: `export async function pay(${TAG} orderNo: string) {}`,
    code: "LW1301",
    message: NO_FUNCTION("a parameter"),
  },
  {
    title: "the body of a function",
    source: `export async function pay(orderNo: string) ${TAG} {}`,
    code: "LW1301",
    message: NO_FUNCTION("a block"),
  },
  {
    title: "the value of an arrow function",
    source: `export const pay = async () => ${TAG} work();`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  ...[
    ["calls", "await work();", "a call expression"],
    ["takes a value", "const order = await work();", "a call expression"],
    ["returns", "return work();", "a call expression"],
    ["decides", "if (order) work();", "an if statement"],
  ].flatMap(([what = "", statement = "", found = ""]) => [
    {
      title: `a statement that ${what} at the start of a body, which refuses to run`,
      source: `export async function pay(order: unknown) { ${TAG} ${statement} }`,
      code: "LW1301",
      message: NO_FUNCTION(found),
    },
    {
      title: `a statement that ${what} later in a body`,
      source: `export async function pay(order: unknown) { work(order); ${TAG} ${statement} }`,
      code: "LW1301",
      message: NO_FUNCTION(found),
      bodiless: true as const,
    },
  ]),
  {
    title: "the statement after the directives of a body, which refuses to run",
    source: `export const pay = async () => { "use strict"; ${TAG} work(); };`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  {
    title: "the variables at the start of a body, which refuses to run",
    source: `export async function pay() { ${TAG} let order = 1, count = 2; work(order, count); }`,
    code: "LW1308",
    message: SEVERAL,
  },
  ...[
    [
      "the default export of a function",
      `async function pay() {}\n${TAG}\nexport default pay;`,
      "an identifier",
    ],
    ["the export of a function", `async function pay() {}\n${TAG}\nexport { pay };`, "an export declaration"],
    [
      "the export of an arrow function",
      `const pay = async () => 1;\n${TAG}\nexport { pay as p };`,
      "an export declaration",
    ],
    ["a name in a list of exports", `async function pay() {}\nexport { ${TAG} pay };`, "an export specifier"],
    [
      "another name in a list of exports",
      `const pay = async () => 1;\nexport { ${TAG} pay as p };`,
      "an export specifier",
    ],
    [
      "a wrapped named function",
      `async function pay() {}\n${TAG}\nexport const x = retry(pay);`,
      "a call expression",
    ],
    [
      "a wrapped named function that is assigned",
      `async function pay() {}\nlet x;\n${TAG}\nx = retry(pay, 3);\nexport { x };`,
      "a call expression",
    ],
    [
      "a shorthand property of a function",
      `async function pay() {}\nexport const a = { ${TAG} pay };`,
      "a shorthand property assignment",
    ],
    [
      "an object of names of functions",
      `async function pay() {}\n${TAG}\nexport const a = { pay, now: pay };`,
      "an object literal expression",
    ],
    [
      "a wrapped function inside another function",
      `export function f() { const pay = async () => 1; ${TAG} const x = retry(pay); return x; }`,
      "a call expression",
    ],
  ].map(([title = "", source = "", what = ""]) => ({
    title: `${title}, which refuses to run`,
    source,
    code: "LW1301",
    message: NO_FUNCTION(what),
  })),
  ...[
    [
      "the default export of an import",
      `import { pay } from "./pay";\n${TAG}\nexport default pay;`,
      "an identifier",
    ],
    ["a name in an export from elsewhere", `export { ${TAG} pay } from "./pay";`, "an export specifier"],
    ["an export from elsewhere", `${TAG}\nexport { pay } from "./pay";`, "an export declaration"],
    [
      "a wrapped function from elsewhere",
      `import { pay } from "./pay";\n${TAG}\nexport const x = retry(pay);`,
      "a call expression",
    ],
    ["a wrapped method", `${TAG}\nexport const x = retry(orders.pay);`, "a call expression"],
  ].map(([title = "", source = "", what = ""]) => ({
    title: `${title}, whose function is declared elsewhere`,
    source,
    code: "LW1301",
    message: ELSEWHERE(what),
    bodiless: true as const,
  })),
  {
    title: "an import",
    source: `${TAG}\nimport { pay } from "./pay";\nexport { pay };`,
    code: "LW1301",
    message: ELSEWHERE("an import declaration"),
    bodiless: true,
  },
  {
    title: "an enum",
    source: `${TAG}\nexport enum Pay { now }`,
    code: "LW1301",
    message: NO_FUNCTION("an enum declaration"),
    bodiless: true,
  },
  {
    title: "a namespace",
    source: `${TAG}\nexport namespace Orders { export async function pay() {} }`,
    code: "LW1301",
    message: NO_FUNCTION("a module declaration"),
  },
  {
    title: "an interface",
    source: `${TAG}\nexport interface Orders { pay(): void }`,
    code: "LW1301",
    message: NO_FUNCTION("an interface declaration"),
    bodiless: true,
  },
  {
    title: "a type",
    source: `${TAG}\nexport type Pay = () => Promise<void>;`,
    code: "LW1301",
    message: NO_FUNCTION("a type alias declaration"),
    bodiless: true,
  },
  {
    title: "a static block",
    source: `export class A { ${TAG} static { work(); } }`,
    code: "LW1301",
    message: NO_FUNCTION("a class static block declaration"),
    bodiless: true,
  },
  {
    title: "the end of a template",
    source: `export const a = \`\${b ${TAG}}\`;`,
    code: "LW1301",
    message: NO_FUNCTION("a template tail"),
    bodiless: true,
  },
  {
    title: "a synchronous method",
    source: `export class A { ${TAG} pay() { return 1; } }`,
    code: "LW1302",
    message: notAsync("A.pay"),
  },
  {
    title: "a synchronous function",
    source: `${TAG}\nexport function pay() {}`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a synchronous function in JavaScript, which has no types",
    source: `${TAG}\nexport function pay() {}`,
    fileName: "a.js",
    code: "LW1302",
    message: "`pay` cannot wait for a lock. Fix: make it `async`.",
  },
  {
    title: "a synchronous arrow function that returns a promise without declaring it",
    source: `${TAG}\nexport const pay = () => Promise.resolve();`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a function that may return undefined instead of a promise",
    source: `${TAG}\nexport function pay(): Promise<void> | undefined { return work(); }`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "an arrow function whose variable has a type that may be synchronous",
    source: `${TAG}\nexport const pay: () => Promise<void> | void = () => work();`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a synchronous arrow function inside one that returns a promise",
    source: `export const pay = (): Promise<number> => { ${TAG} const sum = () => 1; return work(sum); };`,
    code: "LW1302",
    message: notAsync("pay.sum"),
  },
  {
    title: "a synchronous default export",
    source: `${TAG}\nexport default function () {}`,
    code: "LW1302",
    message: notAsync("default"),
  },
  {
    title: "a synchronous callback",
    source: `work(${TAG} () => {}); export {};`,
    code: "LW1302",
    message: notAsync("anonymous"),
  },
  ...[
    ["imported by default", 'import Promise from "bluebird";'],
    ["imported by its name", 'import type { Bluebird as Promise } from "bluebird";'],
    ["required", 'import Promise = require("bluebird");'],
    ["a class of the file", "class Promise<T> { value?: T }"],
    ["a type of the file", "type Promise<T> = Bluebird<T>;"],
  ].map(([what = "", declared = ""]) => ({
    title: `a function that returns a \`Promise\` that is ${what}`,
    source: `${declared}\n${TAG}\nexport function pay(): Promise<void> { return work(); }`,
    code: "LW1314",
    message:
      "`pay` cannot wait for a lock. It returns a `Promise` that this file declares, but a locked function returns the global one. Fix: make it `async`.",
  })),
  {
    title: "a constructor",
    source: `export class A extends B { ${TAG} constructor() { super(); } }`,
    code: "LW1303",
    message: "A constructor cannot wait for a lock. Fix: put `@redisLock` on an async method.",
  },
  {
    title: "a getter",
    source: `export class A { ${TAG} get pay() { return 1; } }`,
    code: "LW1304",
    message: ACCESSOR,
  },
  {
    title: "a setter of an object",
    source: `export const a = { ${TAG} set pay(value: number) {} };`,
    code: "LW1304",
    message: ACCESSOR,
  },
  {
    title: "an abstract method",
    source: `export abstract class A { ${TAG} abstract pay(): Promise<void>; }`,
    code: "LW1305",
    message: noBody("An abstract method"),
    bodiless: true,
  },
  {
    title: "an overload signature of a function, whose implementation refuses to run",
    source: `${TAG}\nexport async function pay(a: string): Promise<void>;\nexport async function pay(a: unknown) {}`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "an overload signature of a method, whose implementation refuses to run",
    source: `export class A { ${TAG} pay(a: string): Promise<void>; async pay(a: unknown) {} }`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "an overload signature of a default export, whose implementation refuses to run",
    source: `${TAG}\nexport default async function (a: string): Promise<void>;\nexport default async function (a: unknown) {}`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "a method of an interface",
    source: `export interface A { ${TAG} pay(): Promise<void>; }`,
    code: "LW1305",
    message: noBody("A member of a type"),
    bodiless: true,
  },
  {
    title: "a property of a type literal",
    source: `export type A = { ${TAG} pay: () => Promise<void> };`,
    code: "LW1305",
    message: noBody("A member of a type"),
    bodiless: true,
  },
  {
    title: "a declared function",
    source: `${TAG}\nexport declare function pay(): Promise<void>;`,
    code: "LW1305",
    message: noBody("A declared function"),
    bodiless: true,
  },
  {
    title: "a generator",
    source: `${TAG}\nexport function* pay() {}`,
    code: "LW1306",
    message: GENERATOR,
  },
  {
    title: "a generator method with the type of a promise",
    source: `export class A { ${TAG} *pay(): Promise<void> { yield 1; } }`,
    code: "LW1306",
    message: GENERATOR,
  },
  {
    title: "a reentrant async generator",
    source: `export class A { /** @redisLock businessFlag=pay «reentrant=true» */ async *pay() { yield 1; } }`,
    code: "LW1311",
    message: REENTRANT_GENERATOR,
  },
  ...[
    ["two functions", "function a() {} function «a»() {}"],
    ["a variable and a function", "var a; function «a»() {}"],
  ].map(([what = "", body = ""]) => ({
    title: `an async generator that declares ${what} with one name`,
    source: `/** @redisLock businessFlag=pay */ export async function* pay() { ${body} yield a; }`,
    fileName: "a.js",
    code: "LW1313",
    message:
      "Lockweave puts the body of a generator into a block, where `a` can be declared only once. Fix: rename one of the declarations.",
  })),
  ...[
    ["a constant", "const «tenant» = 1; return tenant;"],
    ["a variable in a block", "if (id) { var «tenant» = 1; } return tenant;"],
    ["a function", "function «tenant»() {} return tenant;"],
  ].map(([what = "", body = ""]) => ({
    title: `a needed lock whose key uses a name that the body declares as ${what}`,
    source: `const tenant = "a"; /** @needsLock businessFlag=pay keyName="tenant" */ export function pay(id) { ${body} }`,
    fileName: "a.js",
    code: "LW1316",
    message:
      "The tag uses `tenant` from outside of the function, but the body declares another `tenant`. Fix: rename one of them.",
  })),
  {
    title: "an async generator whose value of a skip has the name of a variable of the body",
    source: `const busy = 1; /** @redisLock businessFlag=pay onFailure=skip skipValue="busy" */ export async function* pay() { var «busy» = 2; yield busy; }`,
    code: "LW1316",
    message:
      "The tag uses `busy` from outside of the function, but the body declares another `busy`. Fix: rename one of them.",
  },
  {
    title: "a needed lock with an `await` in the key, on a function that is not async",
    source: `/** @needsLock businessFlag=pay «keyName="await id»" */ export function pay(id: Promise<string>) { return id; }`,
    code: "LW1317",
    message:
      "`@needsLock` checks the lock where the body begins, and only an `async` function can `await` there. Fix: make the function `async`.",
  },
  ...[
    ["class with nothing else", `export class A { ${TAG} }`],
    ["class expression", `export const A = class { ${TAG} };`],
    ["file", `export {};\n${TAG}`],
    ["file, before blank lines", `export {};\n${TAG}\n\n`],
    ["block", `export async function pay() { work(); ${TAG} }`],
    ["empty block", `export async function pay() { ${TAG} }`],
    ["object", `export const a = { pay: 1, ${TAG} };`],
    ["empty object", `export const a = { ${TAG} };`],
    ["empty array", `export const a = [${TAG}];`],
    ["argument list", `export const a = pay(1, ${TAG});`],
    ["empty argument list", `export const a = pay(${TAG});`],
    ["switch", `export function pay() { switch (1) { ${TAG} } }`],
    ["enum", `export enum A { ${TAG} }`],
    ["return statement", `export function pay() { return ${TAG}; }`],
  ].map(([where = "", source = ""]) => ({
    title: `the end of a ${where}`,
    source,
    code: "LW1307",
    message: DANGLING,
    bodiless: true as const,
  })),
  ...[
    ["after a method's name", `export class A { async ship ${TAG} (x: string) { work(x); } }`],
    ["before the word `function`", `export async ${TAG} function ship() { work(); }`],
    ["before the `=` of a variable", `export const ship ${TAG} = async () => work();`],
    ["before the colon of a property", `export const a = { ship ${TAG} : async () => work() };`],
    ["before the `=` of a class's property", `export class A { ship ${TAG} = async () => work(); }`],
    ["at the end of a class", `export class A { async pay() {} ${TAG} }`],
    ["in an empty parameter list", `export const pay = (${TAG}) => 1;`],
    ["before the braces of a class", `export class A ${TAG} { async ship() { work(); } }`],
  ].map(([where = "", source = ""]) => ({
    title: `nothing ${where}, whose functions refuse to run`,
    source,
    code: "LW1307",
    message: DANGLING,
  })),
  {
    title: "a stray semicolon of a class, whose methods refuse to run",
    source: `export class A { ${TAG}; async ship() { work(); } }`,
    code: "LW1301",
    message: NO_FUNCTION("a semicolon class element"),
  },
  {
    title: "an empty JSX expression",
    source: `export const a = <p>{${TAG}}</p>;`,
    code: "LW1307",
    message: DANGLING,
    bodiless: true,
    fileName: "a.tsx",
  },
  {
    title: "several variables, which all refuse to run",
    source: `${TAG}\nexport const pay = async () => work(), ship = async () => {};`,
    code: "LW1308",
    message: SEVERAL,
  },
  {
    title: "several variables after a modifier",
    source: `export ${TAG} const pay = async () => work(), ship = async () => {};`,
    code: "LW1308",
    message: SEVERAL,
  },
  {
    title: "a function in a script",
    source: `${TAG}\nasync function pay() { "use strict"; work(); }`,
    code: "LW1309",
    message:
      "`@redisLock` works only in modules. This file has no import and no export. Fix: add `export {}`.",
  },
  {
    title: "an arrow function in a script",
    source: `${TAG}\nconst pay = async () => work();`,
    code: "LW1309",
    message:
      "`@redisLock` works only in modules. This file has no import and no export. Fix: add `export {}`.",
  },
  {
    title: "a function in CommonJS, where `export {}` would do harm",
    source: `${TAG}\nasync function pay() { work(); }\nmodule.exports = { pay };`,
    code: "LW1309",
    message:
      "`@redisLock` works only in ES modules here. Fix: write this file with `import` and `export` instead of `require` and `module.exports`.",
  },
  {
    title: "a reentrant function whose body declares its parameter again",
    source: `/** @redisLock businessFlag=pay «reentrant=true» */\nexport async function pay(count?: number) { for (;;) { var { count = 1 } = work(); } }`,
    code: "LW1310",
    message:
      "Lockweave moves the body into a separate function, because the lock is reentrant or the body returns a promise inside `try`. There, `var count` would hide the parameter. Fix: rename the variable.",
  },
];

export const REDECLARED: readonly Row[] = [
  ["a variable", "let «orderNo» = 1;"],
  ["a constant of a pattern", "const { id: [«first»] } = order;"],
  ["a resource", "using «order» = work();"],
  ["a class", "class «tenant» {}"],
  ["a function", "function «orderNo»() {}"],
].map(([what = "", statement = ""]) => ({
  title: `${what} that declares a parameter's name again`,
  source: onMethod("@redisLock businessFlag=pay").replace("return", `${statement} return`),
  code: "LW1312",
  message: `A parameter and a declaration in the body have the name \`${/«(\w+)»/.exec(statement)?.[1] ?? ""}\`. Fix: rename one of them.`,
}));
