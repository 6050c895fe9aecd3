import { RUNNER } from "../../runtime/base/runner";
import type { Span } from "./span";

/** A problem of a tag, and its exact position. */
export interface Problem extends Span {
  /** The stable code: `LW1001`, ... */
  readonly code: string;
  readonly message: string;
}

type Text = (...words: string[]) => string;

const tick = (word: string): string => `\`${word}\``;

function notInRange(name = "", found = "", from = "", to = ""): string {
  return `Expected ${tick(name)} to be a whole number from ${from} to ${to}, got ${tick(found)}.`;
}

/** Every diagnostic of the transformer. A code never changes its meaning. */
const PROBLEMS = {
  // The tag's grammar.
  notAnAttribute: [
    "LW1001",
    (found) => `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}.`,
  ],
  prose: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Prose goes before the tag.`,
  ],
  otherTag: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Write ${tick(found)} on a line of its own.`,
  ],
  colon: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Write \`=\` between a name and its value.`,
  ],
  noValue: ["LW1001", (name) => `Expected a value after ${tick(name)}, such as \`${name}=true\`.`],
  unitApart: [
    "LW1001",
    (found, value, unit) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Write the unit directly after its number: ${tick(value + unit)}.`,
  ],
  unknownAttribute: ["LW1002", (name, hint) => `There is no attribute ${tick(name)}.${hint}`],
  duplicateAttribute: ["LW1003", (name) => `The attribute ${tick(name)} appears twice.`],
  missingValue: ["LW1004", (name) => `Expected a value after \`${name}=\`.`],
  missingItem: ["LW1005", (name) => `Expected another value after the comma in \`${name}=\`.`],
  strayComma: [
    "LW1005",
    (name) =>
      `Expected another value after the comma in \`${name}=\`. Separate attributes with spaces, not commas.`,
  ],
  unterminatedQuote: [
    "LW1006",
    (quote) => `This quote is not closed. Expected another ${quote} before the end of the tag.`,
  ],
  misspelledTag: ["LW1007", (found) => `There is no tag ${tick(found)}. Did you mean \`@redisLock\`?`],
  notJsDoc: ["LW1008", () => "`@redisLock` works only in a JSDoc comment. Begin the comment with `/**`."],
  notAtLineStart: ["LW1009", () => "`@redisLock` must be at the start of its line in the comment."],
  twoTags: [
    "LW1010",
    () => "A function can have only one `@redisLock`. To lock several values, list them: `keyName=a,b`.",
  ],
  inParentheses: [
    "LW1011",
    () => "Write the attributes without parentheses: `@redisLock businessFlag=payOrder`.",
  ],

  semicolon: [
    "LW1012",
    (found) =>
      `Expected a value, got ${tick(found)}. Separate attributes with spaces, not semicolons. Quote a value that contains a semicolon.`,
  ],

  attributesAlone: [
    "LW1013",
    () =>
      "These are attributes of a lock, but the comment has no `@redisLock`, so the function runs unlocked. Fix: write `@redisLock` before them, or put them in backticks if they are prose.",
  ],

  openCodeBlock: [
    "LW1014",
    () =>
      "A code block (```) in this comment is not closed, so this tag may be part of an example. Fix: close the block above the tag. If the tag is an example, close the block below it.",
  ],
  unclearCodeBlock: [
    "LW1014",
    () =>
      "This tag is in a code block (```) with other tags or with another ```. A closing ``` may be missing above it. Fix: close the block above the tag. If the tag is an example, put it in a code block of its own.",
  ],

  // The attributes' values.
  missingFlag: [
    "LW1101",
    () => "`@redisLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key).",
  ],
  badFlag: [
    "LW1102",
    (found) => `Expected \`businessFlag\` to be printable, non-empty text, got ${tick(found)}.`,
  ],
  oneValue: ["LW1103", (name) => `Expected one value for ${tick(name)}, got a list.`],
  badDuration: [
    "LW1104",
    (name, found, expected) => `Expected ${tick(name)} to be ${expected}, got ${tick(found)}.`,
  ],
  badCount: ["LW1105", notInRange],
  badBoolean: [
    "LW1106",
    (name, found) => `Expected ${tick(name)} to be \`true\` or \`false\`, got ${tick(found)}.`,
  ],
  badKeyType: [
    "LW1107",
    (found, hint) =>
      `Expected \`keyType\` to be \`VALUE\`, \`CLASS\`, or \`JSON\`, got ${tick(found)}.${hint}`,
  ],
  badOnFailure: [
    "LW1108",
    (found, hint) =>
      `Expected \`onFailure\` to be \`throw\`, \`skip\`, or the name of an error class, got ${tick(found)}.${hint}`,
  ],
  badKeyClass: [
    "LW1109",
    (found) => `Expected \`keyClass\` to be the name of a class or an interface, got ${tick(found)}.`,
  ],
  badOnLost: ["LW1110", (found) => `Expected \`onLost\` to be \`throw\` or \`warn\`, got ${tick(found)}.`],
  implausibleDuration: [
    "LW1111",
    (attribute, as, other) =>
      `${tick(attribute)} is ${as}. If you mean that, write the unit. Otherwise, did you mean ${tick(other)}?`,
  ],
  badStore: [
    "LW1112",
    (found) =>
      `Expected \`store\` to be a name in \`configure({ stores })\` (letters, digits, \`-\`, and \`_\`), got ${tick(found)}.`,
  ],
  unknownStore: [
    "LW1113",
    (found, there) =>
      `There is no store ${tick(found)}. The sources configure only ${there}, so the application will fail at startup.`,
  ],
  badRelease: [
    "LW1114",
    (found) => `Expected \`release\` to be \`awaited\` or \`background\`, got ${tick(found)}.`,
  ],
  badMode: ["LW1120", (found) => `Expected \`mode\` to be \`read\` or \`write\`, got ${tick(found)}.`],
  badPermits: ["LW1121", notInRange],
  modeAndPermits: ["LW1122", () => "A lock has either a `mode` or `permits`. Remove one of them."],
  fencingBesideOthers: [
    "LW1123",
    () =>
      "`fencing` needs an exclusive lock. Fencing tokens order holders, but `mode=read` and `permits` let several hold the lock at once. Remove one of them.",
  ],

  sharedOtherwise: [
    "LW1124",
    (words, others, site) =>
      `A lock with ${tick(words)} here and one with ${tick(others)} at ${tick(site)} may have the same key. If they do, the smaller number applies. Use the same number, or give one of them another \`businessFlag\`.`,
  ],

  refusedPair: [
    "LW1130",
    (one, other, because) =>
      `${tick(one)} and ${tick(other)} cannot be combined: ${because}. Remove one of them.`,
  ],
  longerThanLockTime: [
    "LW1131",
    (name, lockTime) =>
      `Expected ${tick(name)} to be at most ${tick(`lockTime=${lockTime}`)}, because the lock of a dead process expires after that time.`,
  ],
  shorterThanLockTime: [
    "LW1132",
    (name, lockTime) => `Expected ${tick(name)} to be at least ${tick(`lockTime=${lockTime}`)}.`,
  ],

  // The key.
  badPath: [
    "LW1201",
    (found, hint) => `Expected a parameter or a path such as \`order.user.id\`, got ${tick(found)}.${hint}`,
  ],
  unknownParameter: ["LW1202", (found, hint) => `The function has no parameter ${tick(found)}.${hint}`],
  badExpression: ["LW1203", (found) => `Expected an expression between the quotes, got ${tick(found)}.`],
  badField: [
    "LW1204",
    (found) => `Expected \`fieldName\` to be a field or a path such as \`user.id\`, got ${tick(found)}.`,
  ],
  fieldNeedsType: ["LW1205", () => "`fieldName` needs `keyType=CLASS` or `keyType=JSON`."],
  typeNeedsField: [
    "LW1206",
    (type) => `\`keyType=${type}\` needs \`fieldName=\`, the field that identifies the object.`,
  ],
  needsKeyName: ["LW1207", (name) => `${tick(name)} needs \`keyName=\`, the parameter that it applies to.`],
  oneKeyName: [
    "LW1208",
    (type) =>
      `\`keyType=${type}\` takes one \`keyName\`. For several fields of it, list them in \`fieldName=a,b\`.`,
  ],
  classNeedsType: ["LW1209", () => "`keyClass` needs `keyType=CLASS` or `keyType=JSON`."],

  unclosedValue: ["LW1210", () => "This `${` is not closed. Expected a parameter or a path, and `}`."],
  badValue: [
    "LW1211",
    (found) =>
      `Expected a parameter, a path such as \`order.user.id\`, or another expression in \`\${...}\`, got ${tick(found)}. For several values, write several \`\${...}\` with text between them.`,
  ],
  adjacentValues: [
    "LW1212",
    () =>
      'Expected text between two values, such as `:`. Without one, "1" and "23" make the same key as "12" and "3".',
  ],
  badWholeKey: [
    "LW1213",
    (found) => `Expected \`key\` to be printable, non-empty text on one line, got ${tick(found)}.`,
  ],
  reservedKey: [
    "LW1214",
    (namespace) => `A key must not begin with ${tick(namespace)}. Lockweave keeps its queues there.`,
  ],
  keyIsText: [
    "LW1215",
    (key) =>
      `${tick(`key=${key}`)} is literal text, so every call has the same key. To use the value of ${tick(key)}, write ${tick(`key="...:\${${key}}"`)}, or \`businessFlag=... keyName=${key}\`.`,
  ],

  // The place of the tag.
  notAFunction: ["LW1301", (found) => `\`@redisLock\` locks functions, but this is ${found}.`],
  functionElsewhere: [
    "LW1301",
    (found) =>
      `\`@redisLock\` locks functions, but this is ${found}. The function is declared elsewhere, and would run unlocked. Put the tag on its declaration.`,
  ],
  notAsync: [
    "LW1302",
    (name, ...types) =>
      `${tick(name)} cannot wait for a lock. Make it \`async\`${types.map((type) => `, or give it the return type ${tick(type)}`).join("")}.`,
  ],
  ownPromise: [
    "LW1314",
    (name) =>
      `${tick(name)} cannot wait for a lock. It returns a \`Promise\` that this file declares, but a locked function returns the global one. Make it \`async\`.`,
  ],
  constructorTagged: [
    "LW1303",
    () => "A constructor cannot wait for a lock. Put `@redisLock` on an async method.",
  ],
  accessorTagged: [
    "LW1304",
    () => "An accessor cannot wait for a lock. Put `@redisLock` on an async method.",
  ],
  noBody: ["LW1305", (found) => `${found} has no body to lock. Put \`@redisLock\` on the implementation.`],
  generatorTagged: [
    "LW1306",
    () => "A synchronous generator cannot wait for a lock. Make it an `async` generator.",
  ],
  dangling: [
    "LW1307",
    () => "There is nothing to lock after this `@redisLock`. Put it directly before a function.",
  ],
  severalVariables: [
    "LW1308",
    () =>
      "`@redisLock` before several variables is ambiguous. Declare the function in a statement of its own.",
  ],
  notAModule: [
    "LW1309",
    () => "`@redisLock` works only in modules. This file has no import and no export. Add `export {}`.",
  ],
  onlyCommonJs: [
    "LW1309",
    () =>
      "`@redisLock` works only in ES modules here. Fix: write this file with `import` and `export` instead of `require` and `module.exports`.",
  ],
  redeclaredParameter: [
    "LW1310",
    (name) =>
      `Lockweave moves the body into a separate function, because the lock is reentrant or the body returns a promise inside \`try\`. There, \`var ${name}\` would hide the parameter. Fix: rename the variable.`,
  ],
  duplicateParameter: ["LW1312", (name) => `Duplicate identifier ${tick(name)}. A parameter has this name.`],
  reentrantGenerator: [
    "LW1311",
    () =>
      "A generator cannot be `reentrant`, because its body cannot become a separate function. Write `reentrant=false`.",
  ],
  readingGenerator: [
    "LW1315",
    () =>
      "A generator cannot have `mode=read`, because its body cannot become a separate function. Lock the functions that it calls instead.",
  ],
  duplicateInGenerator: [
    "LW1313",
    (name) =>
      `Lockweave puts the body of a generator into a block, where ${tick(name)} can be declared only once. Fix: rename one of the declarations.`,
  ],

  // The project.
  unparsed: [
    "LW1402",
    () => "This file has a syntax error, so Lockweave cannot weave it. The file refuses to run.",
  ],
  unlockedDependency: [
    "LW1403",
    (names, file) =>
      `This imports ${names} with \`@redisLock\`, but ${tick(file)} does not contain the lock. It was built without Lockweave, or from other sources. Fix: add { "transform": "lockweave/transformer", "transformProgram": true } to \`plugins\` in its own tsconfig.json, and build it again with \`${RUNNER} tspc -b --force\`. \`${RUNNER} lockweave init\` in its directory sets this up.`,
  ],
  lockOfSourceMissing: [
    "LW1403",
    (names, file) =>
      `${tick(file)} does not contain the lock of ${names}, but its source has \`@redisLock\`. It was built without Lockweave, or its compiler removed the tag. Fix: build it with Lockweave's plugin for its bundler, or keep comments. For swc, set \`"jsc": { "preserveAllComments": true }\` in .swcrc. \`${RUNNER} lockweave init\` sets this up.`,
  ],
  tagInComponent: [
    "LW1404",
    () =>
      "Compilers drop comments in components, so Lockweave does not accept tags there. Move the function into a `.ts` or `.js` file, and import it.",
  ],
  tagLostBefore: [
    "LW1404",
    (name) =>
      `${tick(name)} would run without its lock. Another plugin loaded this file and removed the comment with the tag. Fix: make that plugin keep comments (no \`removeComments\`), use a plugin that compiles in its \`transform\` hook, or put Lockweave's plugin before it.`,
  ],
  tagNotSeen: [
    "LW1404",
    (name, cure) =>
      `${tick(name)} would run without its lock. Lockweave's plugin never received this file. Fix: ${cure}.`,
  ],
  tagCompiledElsewhere: [
    "LW1404",
    (name) =>
      `${tick(name)} would run without its lock. A tool compiled this file itself, and \`lockweave/register\` never received it. Fix: load the file with \`import\` or \`require()\`.`,
  ],
  importNotSeen: [
    "LW1404",
    (importer) =>
      `This file would run without its locks. \`require()\` loads the ES module ${tick(importer)}, which imports this file, and Node 20 does not show such imports to \`lockweave/register\`. Fix: load that module with \`import()\`, or use Node 22.18 or later.`,
  ],
  workerNotSeen: [
    "LW1404",
    () =>
      "This worker would run without its locks. A file imported `Worker` before `lockweave/register`, so Lockweave could not hook the worker. Fix: preload `lockweave/register` before all other files.",
  ],
  workerUsesItsPlace: [
    "LW1404",
    () =>
      "In Deno, workers do not inherit `lockweave/register`, so Lockweave imports them from another module. This worker uses `import.meta.main` or `Deno.mainModule`, whose value would change. Fix: do not use them in a worker.",
  ],
  handshakeAsValue: [
    "LW1405",
    (called) =>
      `This passes ${tick(called)} as a value. Lockweave cannot weave calls through that value, so they fail with LOCK_NOT_WOVEN. Call ${tick(called)} directly: \`${called}({ ... })\`, \`locks.${called}({ ... })\` if you imported the module as \`locks\`, or \`const start = ${called}; start({ ... })\`.`,
  ],
  handshakeSpread: [
    "LW1405",
    (called) =>
      `Lockweave cannot weave a call with a spread, so the call fails with LOCK_NOT_WOVEN. Call ${tick(called)} with one argument: \`${called}({ ... })\`.`,
  ],
  exportedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\` from ${tick(file)}, a TypeScript file that a linked package exports. This build does not emit that file, so Node or a later bundler runs it without its lock. Fix: make the package export the output of \`tspc\`, or import only its types, with \`import type\`. If Lockweave's plugin bundles the file, or \`lockweave/register\` loads it, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  externalAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\` from ${tick(file)}, a TypeScript file that a linked package exports. The bundle leaves the package out, so Node runs that file without its lock. Fix: configure the bundler to include the package, make the package export the output of \`tspc\`, or import only its types, with \`import type\`. If \`lockweave/register\` loads the package, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  installedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\` from ${tick(file)}, a TypeScript file that an installed package exports. Files in \`node_modules\` are not woven, so it runs without its lock. Fix: make the package export the output of \`tspc\`, or import only its types, with \`import type\`.`,
  ],
  loadedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\` from ${tick(file)}. \`paths\` points the compiler to that file, but the output still imports the package, and the package exports its TypeScript, which Node runs without the lock. Fix: make the package export the output of \`tspc\`. If a tool rewrites the paths in the output, or \`lockweave/register\` loads the package, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  loadedFromPackage: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\`. \`paths\` points the compiler to the source, but the output still imports the package, and its ${tick(file)} does not contain the lock. Fix: build the package with \`tspc\`. If a tool rewrites the paths in the output, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  scriptAside: [
    "LW1406",
    (names, file) =>
      `This imports ${names} with \`@redisLock\` from ${tick(file)}, a JavaScript file that this build neither emits nor weaves. Fix: set \`allowJs\`, and remove any \`.d.ts\` beside it. If \`lockweave/register\` loads it, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  nestedTooDeeply: [
    "LW1408",
    () =>
      "An expression in this file is nested too deeply to weave, so the file refuses to run. Fix: split the longest chain of operators or calls into several statements, or move it into a file without a tag.",
  ],
  emittedUnlocked: [
    "LW1407",
    (name, caller) =>
      `${tick(name)} would run without its lock. A patched TypeScript weaves only for compilers that Lockweave knows, and ${caller} is not one of them. Fix: build with \`tspc\` or \`nest build\`, use Lockweave's plugin for your bundler, or configure this tool to load \`ts-patch/compiler\` as its TypeScript.`,
  ],

  unsupportedPlace: [
    "LW1409",
    (name, where, why, fix) =>
      `${tick(name)} is in a build that runs ${where}. Lockweave cannot run there. ${why}. Fix: ${fix}.`,
  ],

  // The effects of tagged functions on each other.
  lockOrder: [
    "LW1501",
    (flags, paths) =>
      `Callers acquire ${flags} in different orders, so they can wait for each other until their wait budgets end: ${paths}. Acquire them in the same order everywhere.`,
  ],
  waitsForItself: [
    "LW1502",
    (name, flag, path, cure) => `${tick(name)} waits for its own lock ${tick(flag)}: ${path}. ${cure}`,
  ],
  mayWaitForItself: [
    "LW1502",
    (name, flag, path, cure) =>
      `${tick(name)} holds a lock ${tick(flag)} and waits for another one: ${path}. If both locks have the same key, it waits for itself. If callers acquire the keys in different orders, they wait for each other. ${cure}`,
  ],
  outlivesLock: [
    "LW1503",
    (what, name) =>
      `${what}: it may still run after \`${name}\` has released its lock. Wait for it before the body ends, or start it after the release.`,
  ],
  outlastsLock: [
    "LW1504",
    (name, ends, other, budget, path) =>
      `The lock of ${tick(name)} ends after ${ends}, but its body may wait ${budget} for the lock of ${tick(other)}: ${path}. Give ${tick(other)} a shorter \`waitTime\`, or ${tick(name)} more time.`,
  ],
  keysNeverMeet: [
    "LW1505",
    (flag, here, there, name, why) =>
      `The keys of ${tick(flag)} here and at ${tick(name)} can never be the same, so the two locks do not exclude each other: ${here} here, ${there} there${why}. Make them the same, or give one of them another \`businessFlag\`.`,
  ],
  similarFlag: [
    "LW1506",
    (flag, other, name) =>
      `Only this tag has the flag ${tick(flag)}, but ${tick(name)} has ${tick(other)}. Is one of them misspelled? Locks with different flags do not exclude each other.`,
  ],
  untaggedOverride: [
    "LW1507",
    (name, other) =>
      `${tick(other)} is locked, but ${tick(name)}, which overrides it, is not. Tags are not inherited. Tag it too, or call ${tick(other)}.`,
  ],
  untaggedSibling: [
    "LW1507",
    (name, member, other) =>
      `${tick(name)} and ${tick(other)} implement ${tick(member)}, but only ${tick(other)} is locked. Tags are not inherited. Tag it too.`,
  ],
  allowedWithoutReason: [
    "LW1508",
    (code) =>
      `Expected a reason after \`lockweave-allow ${code}\`, such as \`// lockweave-allow ${code}: the audit trail may be late\`.`,
  ],
  badPluginOption: ["LW1401", (found) => found],
} satisfies Record<string, [string, Text]>;

export type ProblemName = keyof typeof PROBLEMS;

export function problem(name: ProblemName, { start, end }: Span, ...words: string[]): Problem {
  const [code, text] = PROBLEMS[name] as [string, Text];
  return { start, end, code, message: text(...words) };
}
