import { RUNNER } from "../../runtime/base/runner";
import type { Span } from "./span";

/** A problem of a tag, and its exact position. */
export interface Problem extends Span {
  /** The stable code: `LW1001`, ... */
  readonly code: string;
  readonly message: string;
  /** The texts that the author may mean instead of the text at this position. The editor offers them as quick fixes. */
  readonly replacements?: readonly string[];
}

type Text = (...words: string[]) => string;

const tick = (word: string): string => `\`${word}\``;
const isNeed = (tag: string): boolean => tag === "@needsLock";
/** What a function lacks without the weave. */
const lostOf = (tag: string): string => (isNeed(tag) ? "the check of its `@needsLock`" : "its lock");

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
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Fix: move prose before the tag.`,
  ],
  otherTag: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Fix: write ${tick(found)} on a line of its own.`,
  ],
  colon: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Fix: write \`=\` between a name and its value.`,
  ],
  noValue: ["LW1001", (name) => `Expected a value after ${tick(name)}, such as \`${name}=true\`.`],
  unitApart: [
    "LW1001",
    (found, value, unit) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Fix: write the unit directly after its number: ${tick(value + unit)}.`,
  ],
  unknownAttribute: ["LW1002", (name, hint) => `There is no attribute ${tick(name)}.${hint}`],
  notOfNeed: [
    "LW1002",
    (name) =>
      `\`@needsLock\` has no attribute ${tick(name)}. It only names the lock that callers hold: \`businessFlag\`, \`keyName\`, \`keyType\`, \`keyClass\`, \`fieldName\`, \`key\`, \`store\`, or \`mode\`. Fix: remove it.`,
  ],
  duplicateAttribute: [
    "LW1003",
    (name) => `The attribute ${tick(name)} appears twice. Fix: remove one of them.`,
  ],
  missingValue: ["LW1004", (name) => `Expected a value after \`${name}=\`.`],
  missingItem: ["LW1005", (name) => `Expected another value after the comma in \`${name}=\`.`],
  strayComma: [
    "LW1005",
    (name) =>
      `Expected another value after the comma in \`${name}=\`. Fix: separate attributes with spaces, not commas.`,
  ],
  unterminatedQuote: [
    "LW1006",
    (quote) => `This quote is not closed. Expected another ${quote} before the end of the tag.`,
  ],
  misspelledTag: ["LW1007", (found, meant) => `There is no tag ${tick(found)}. Did you mean ${tick(meant)}?`],
  notJsDoc: [
    "LW1008",
    (tag) => `${tick(tag)} works only in a JSDoc comment. Fix: begin the comment with \`/**\`.`,
  ],
  notAtLineStart: [
    "LW1009",
    (tag) =>
      `${tick(tag)} must be at the start of its line in the comment. Fix: move it to a line of its own.`,
  ],
  twoTags: [
    "LW1010",
    () => "A function can have only one `@redisLock`. Fix: list several values in one tag: `keyName=a,b`.",
  ],
  inParentheses: [
    "LW1011",
    (tag) =>
      `The attributes of ${tick(tag)} have no parentheses. Fix: write ${tick(`${tag} businessFlag=payOrder`)}.`,
  ],

  semicolon: [
    "LW1012",
    (found) =>
      `Expected a value, got ${tick(found)}. Fix: separate attributes with spaces, or quote a value that contains a semicolon.`,
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
    (tag) =>
      `${tick(tag)} needs \`businessFlag=\` (the namespace of its keys) or \`key=\` (the whole key). Fix: add one of them.`,
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
    (name, found, or) =>
      `Expected ${tick(name)} to be ${or === "" ? "`true` or `false`" : `\`true\`, \`false\`, or ${tick(or)}`}, got ${tick(found)}.`,
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
  textAroundValue: [
    "LW1116",
    (name) =>
      `Expected ${tick(name)} to be one number or one \`\${...}\`, without other text. Fix: put the whole calculation into the braces.`,
  ],
  badOnUnreachable: [
    "LW1115",
    (found, hint) => `Expected \`onUnreachable\` to be \`throw\` or \`skip\`, got ${tick(found)}.${hint}`,
  ],
  badOnLost: ["LW1110", (found) => `Expected \`onLost\` to be \`throw\` or \`warn\`, got ${tick(found)}.`],
  implausibleDuration: [
    "LW1111",
    (attribute, as, other) =>
      `${tick(attribute)} is ${as}. Fix: write the unit, or ${tick(other)} if you mean that.`,
  ],
  badStore: [
    "LW1112",
    (found) =>
      `Expected \`store\` to be a name in \`configure({ stores })\` (letters, digits, \`-\`, and \`_\`), got ${tick(found)}.`,
  ],
  unknownStore: [
    "LW1113",
    (found, there) =>
      `There is no store ${tick(found)}. The sources configure only ${there}, so the application will fail at startup. Fix: add it to \`configure({ stores })\`, or name a configured store.`,
  ],
  badRelease: [
    "LW1114",
    (found) => `Expected \`release\` to be \`awaited\` or \`background\`, got ${tick(found)}.`,
  ],
  badMode: ["LW1120", (found) => `Expected \`mode\` to be \`read\` or \`write\`, got ${tick(found)}.`],
  badPermits: ["LW1121", notInRange],
  modeAndPermits: ["LW1122", () => "A lock has either a `mode` or `permits`. Fix: remove one of them."],
  fencingBesideOthers: [
    "LW1123",
    () =>
      "`fencing` needs an exclusive lock. Fencing tokens order holders, but `mode=read` and `permits` let several hold the lock at once. Fix: remove one of them.",
  ],

  sharedOtherwise: [
    "LW1124",
    (words, others, site) =>
      `A lock with ${tick(words)} here and one with ${tick(others)} at ${tick(site)} may have the same key. If they do, the smaller number applies. Fix: use the same number, or give one of them another \`businessFlag\`.`,
  ],

  refusedPair: [
    "LW1130",
    (one, other, because) =>
      `${tick(one)} and ${tick(other)} cannot be combined: ${because}. Fix: remove one of them.`,
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
  skipValueWithoutSkip: [
    "LW1133",
    () =>
      "`skipValue` needs `onFailure=skip` or `onUnreachable=skip`. Without them, the call throws. Fix: add one of them, or remove `skipValue`.",
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
      `\`keyType=${type}\` takes one \`keyName\`. Fix: list several fields of it in \`fieldName=a,b\`.`,
  ],
  classNeedsType: ["LW1209", () => "`keyClass` needs `keyType=CLASS` or `keyType=JSON`."],

  unclosedValue: ["LW1210", () => "This `${` is not closed. Expected a parameter or a path, and `}`."],
  badValue: [
    "LW1211",
    (found) =>
      `Expected a parameter, a path such as \`order.user.id\`, or another expression in \`\${...}\`, got ${tick(found)}. Fix: for several values, write several \`\${...}\` with text between them.`,
  ],
  adjacentValues: [
    "LW1212",
    () =>
      'Expected text between two values, such as `:`. Without it, "1" and "23" make the same key as "12" and "3".',
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
      `${tick(`key=${key}`)} is literal text, so every call has the same key. Fix: to use the value of ${tick(key)}, write ${tick(`key="...:\${${key}}"`)}, or \`businessFlag=... keyName=${key}\`.`,
  ],

  // The place of the tag.
  notAFunction: [
    "LW1301",
    (found, tag) =>
      `${tick(tag)} ${isNeed(tag) ? "belongs to functions" : "locks functions"}, but this is ${found}. Fix: move the tag to a function, or remove it.`,
  ],
  functionElsewhere: [
    "LW1301",
    (found, tag) =>
      isNeed(tag)
        ? `${tick(tag)} belongs to functions, but this is ${found}. The function is declared elsewhere, and would run unchecked. Fix: put the tag on its declaration.`
        : `${tick(tag)} locks functions, but this is ${found}. The function is declared elsewhere, and would run unlocked. Fix: put the tag on its declaration.`,
  ],
  notAsync: [
    "LW1302",
    (name, ...types) =>
      `${tick(name)} cannot wait for a lock. Fix: make it \`async\`${types.map((type) => `, or give it the return type ${tick(type)}`).join("")}.`,
  ],
  ownPromise: [
    "LW1314",
    (name) =>
      `${tick(name)} cannot wait for a lock. It returns a \`Promise\` that this file declares, but a locked function returns the global one. Fix: make it \`async\`.`,
  ],
  constructorTagged: [
    "LW1303",
    (tag) =>
      isNeed(tag)
        ? "Lockweave cannot check a constructor. Fix: put `@needsLock` on a method."
        : "A constructor cannot wait for a lock. Fix: put `@redisLock` on an async method.",
  ],
  accessorTagged: [
    "LW1304",
    (tag) =>
      isNeed(tag)
        ? "Lockweave cannot check an accessor. Fix: put `@needsLock` on a method."
        : "An accessor cannot wait for a lock. Fix: put `@redisLock` on an async method.",
  ],
  noBody: [
    "LW1305",
    (found, tag) =>
      `${found} has no body to ${isNeed(tag) ? "check" : "lock"}. Fix: put ${tick(tag)} on the implementation.`,
  ],
  generatorTagged: [
    "LW1306",
    () => "A synchronous generator cannot wait for a lock. Fix: make it an `async` generator.",
  ],
  dangling: [
    "LW1307",
    (tag) =>
      `There is nothing to ${isNeed(tag) ? "check" : "lock"} after this ${tick(tag)}. Fix: put it directly before a function.`,
  ],
  severalVariables: [
    "LW1308",
    (tag) =>
      `${tick(tag)} before several variables is ambiguous. Fix: declare the function in a statement of its own.`,
  ],
  notAModule: [
    "LW1309",
    (tag) =>
      `${tick(tag)} works only in modules. This file has no import and no export. Fix: add \`export {}\`.`,
  ],
  onlyCommonJs: [
    "LW1309",
    (tag) =>
      `${tick(tag)} works only in ES modules here. Fix: write this file with \`import\` and \`export\` instead of \`require\` and \`module.exports\`.`,
  ],
  redeclaredParameter: [
    "LW1310",
    (name) =>
      `Lockweave moves the body into a separate function, because the lock is reentrant or the body returns a promise inside \`try\`. There, \`var ${name}\` would hide the parameter. Fix: rename the variable.`,
  ],
  duplicateParameter: [
    "LW1312",
    (name) =>
      `A parameter and a declaration in the body have the name ${tick(name)}. Fix: rename one of them.`,
  ],
  reentrantGenerator: [
    "LW1311",
    () =>
      "A generator cannot be `reentrant`, because its body cannot become a separate function. Fix: write `reentrant=false`.",
  ],
  readingGenerator: [
    "LW1315",
    () =>
      "A generator cannot have `mode=read`, because its body cannot become a separate function. Fix: lock the functions that it calls.",
  ],
  duplicateInGenerator: [
    "LW1313",
    (name) =>
      `Lockweave puts the body of a generator into a block, where ${tick(name)} can be declared only once. Fix: rename one of the declarations.`,
  ],
  hiddenName: [
    "LW1316",
    (name) =>
      `The tag uses ${tick(name)} from outside of the function, but the body declares another ${tick(name)}. Fix: rename one of them.`,
  ],
  awaitInNeed: [
    "LW1317",
    () =>
      "`@needsLock` checks the lock where the body begins, and only an `async` function can `await` there. Fix: make the function `async`.",
  ],

  // The project.
  unparsed: [
    "LW1402",
    (found = "") =>
      `This file has a syntax error: ${found.replace(/\.$/, "")}. Lockweave cannot weave it, so the file refuses to run.`,
  ],
  unlockedDependency: [
    "LW1403",
    (names, file) =>
      `This imports ${names}, but ${tick(file)} does not contain the lock. It was built without Lockweave, or from other sources. Fix: add { "transform": "lockweave/transformer", "transformProgram": true } to \`plugins\` in its own tsconfig.json, and build it again with \`${RUNNER} tspc -b --force\`. \`${RUNNER} lockweave init\` in its directory sets this up.`,
  ],
  lockOfSourceMissing: [
    "LW1403",
    (names, file) =>
      `${tick(file)} does not contain the lock of ${names}, but its source has the tag. It was built without Lockweave, or its compiler removed the tag. Fix: build it with Lockweave's plugin for its bundler, or keep comments. For swc, set \`"jsc": { "preserveAllComments": true }\` in .swcrc. \`${RUNNER} lockweave init\` sets this up.`,
  ],
  tagInComponent: [
    "LW1404",
    () =>
      "Compilers drop comments in components, so Lockweave does not accept tags there. Fix: move the function into a `.ts` or `.js` file, and import it.",
  ],
  tagLostBefore: [
    "LW1404",
    (name, tag) =>
      `${tick(name)} would run without ${lostOf(tag)}. Another plugin loaded this file and removed the comment with the tag. Fix: make that plugin keep comments (no \`removeComments\`), use a plugin that compiles in its \`transform\` hook, or put Lockweave's plugin before it.`,
  ],
  tagNotSeen: [
    "LW1404",
    (name, tag, fix) =>
      `${tick(name)} would run without ${lostOf(tag)}. Lockweave's plugin never received this file. Fix: ${fix}.`,
  ],
  tagCompiledElsewhere: [
    "LW1404",
    (name, tag) =>
      `${tick(name)} would run without ${lostOf(tag)}. A tool compiled this file itself, and \`lockweave/register\` never received it. Fix: load the file with \`import\` or \`require()\`.`,
  ],
  tagLostInHook: [
    "LW1404",
    (name, tag, hook) =>
      `${tick(name)} would run without ${lostOf(tag)}. ${tick(hook)} compiled this file from disk, or took its output from a cache. Fix: clear that cache, and turn it off. If that does not help, load the file with tsx, ts-node, or Node 22.18 or later instead.`,
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
      `This passes ${tick(called)} as a value. Lockweave cannot weave calls through that value, so they fail with LOCK_NOT_WOVEN. Fix: call ${tick(called)} directly: \`${called}({ ... })\`, \`locks.${called}({ ... })\` if you imported the module as \`locks\`, or \`const start = ${called}; start({ ... })\`.`,
  ],
  handshakeSpread: [
    "LW1405",
    (called) =>
      `Lockweave cannot weave a call with a spread, so the call fails with LOCK_NOT_WOVEN. Fix: call ${tick(called)} with one argument: \`${called}({ ... })\`.`,
  ],
  exportedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} from ${tick(file)}, a TypeScript file that a linked package exports. This build does not emit that file, so Node or a later bundler runs it without its lock. Fix: make the package export the output of \`tspc\`, or import only its types, with \`import type\`. If Lockweave's plugin bundles the file, or \`lockweave/register\` loads it, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  externalAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} from ${tick(file)}, a TypeScript file that a linked package exports. The bundle leaves the package out, so Node runs that file without its lock. Fix: configure the bundler to include the package, make the package export the output of \`tspc\`, or import only its types, with \`import type\`. If \`lockweave/register\` loads the package, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  installedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} from ${tick(file)}, a TypeScript file that an installed package exports. Files in \`node_modules\` are not woven, so it runs without its lock. Fix: make the package export the output of \`tspc\`, or import only its types, with \`import type\`.`,
  ],
  loadedAsSource: [
    "LW1406",
    (names, file) =>
      `This imports ${names} from ${tick(file)}. \`paths\` points the compiler to that file, but the output still imports the package, and the package exports its TypeScript, which Node runs without the lock. Fix: make the package export the output of \`tspc\`. If a tool rewrites the paths in the output, or \`lockweave/register\` loads the package, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  loadedFromPackage: [
    "LW1406",
    (names, file) =>
      `This imports ${names}. \`paths\` points the compiler to the source, but the output still imports the package, and its ${tick(file)} does not contain the lock. Fix: build the package with \`tspc\`. If a tool rewrites the paths in the output, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  scriptAside: [
    "LW1406",
    (names, file) =>
      `This imports ${names} from ${tick(file)}, a JavaScript file that this build neither emits nor weaves. Fix: set \`allowJs\`, and remove any \`.d.ts\` next to it. If \`lockweave/register\` loads it, allow it here with a reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  nestedTooDeeply: [
    "LW1408",
    () =>
      "An expression in this file is nested too deeply to weave, so the file refuses to run. Fix: split the longest chain of operators or calls into several statements, or move it into a file without a tag.",
  ],
  emittedUnlocked: [
    "LW1407",
    (name, tag, caller) =>
      `${tick(name)} would run without ${lostOf(tag)}. A patched TypeScript weaves only for compilers that Lockweave knows, and ${caller} is not one of them. Fix: build with \`tspc\` or \`nest build\`, use Lockweave's plugin for your bundler, or configure this tool to load \`ts-patch/compiler\` as its TypeScript.`,
  ],

  unsupportedPlace: [
    "LW1409",
    (name, where, why, fix) =>
      `${tick(name)} is in a build that runs ${where}. Lockweave cannot run there. ${why}. Fix: ${fix}.`,
  ],
  staleList: [
    "LW1410",
    (differences, fix) =>
      `The list does not match the locks in the sources:\n${differences}\nFix: run \`${fix}\`, and review the change.`,
  ],

  // The effects of tagged functions on each other.
  lockOrder: [
    "LW1501",
    (flags, paths) =>
      `Callers acquire ${flags} in different orders, so they can wait for each other until their wait budgets end: ${paths}. Fix: acquire them in the same order everywhere.`,
  ],
  waitsForItself: [
    "LW1502",
    (name, flag, path, fix) => `${tick(name)} waits for its own lock ${tick(flag)}: ${path}. Fix: ${fix}`,
  ],
  mayWaitForItself: [
    "LW1502",
    (name, flag, path, fix) =>
      `${tick(name)} holds a lock ${tick(flag)} and waits for another one: ${path}. If both locks have the same key, it waits for itself. If callers acquire the keys in different orders, they wait for each other. Fix: ${fix}`,
  ],
  outlivesLock: [
    "LW1503",
    (what, name) =>
      `${what}. This work may still run after ${tick(name)} has released its lock. Fix: wait for it before the body ends, or start it after the release.`,
  ],
  outlastsLock: [
    "LW1504",
    (name, ends, other, budget, path) =>
      `The lock of ${tick(name)} ends after ${ends}, but its body may wait ${budget} for the lock of ${tick(other)}: ${path}. Fix: give ${tick(other)} a shorter wait, or ${tick(name)} more time.`,
  ],
  keysNeverMeet: [
    "LW1505",
    (flag, here, there, name, why) =>
      `The keys of ${tick(flag)} here and at ${tick(name)} can never be the same, so the two locks do not exclude each other: ${here} here, ${there} there${why}. Fix: make them the same, or give one of them another \`businessFlag\`.`,
  ],
  similarFlag: [
    "LW1506",
    (flag, other, name) =>
      `Only this tag has the flag ${tick(flag)}, but ${tick(name)} has ${tick(other)}. Locks with different flags do not exclude each other. Fix: if one of them is misspelled, correct it.`,
  ],
  untaggedOverride: [
    "LW1507",
    (name, other) =>
      `${tick(other)} is locked, but ${tick(name)}, which overrides it, is not. Tags are not inherited. Fix: also tag it, or call ${tick(other)}.`,
  ],
  untaggedSibling: [
    "LW1507",
    (name, member, other) =>
      `${tick(name)} and ${tick(other)} implement ${tick(member)}, but only ${tick(other)} is locked. Tags are not inherited. Fix: also tag it.`,
  ],
  allowedWithoutReason: [
    "LW1508",
    (code) =>
      `Expected a reason after \`lockweave-allow ${code}\`, such as \`// lockweave-allow ${code}: the audit trail may be late\`.`,
  ],
  commitsAfterRelease: [
    "LW1509",
    (name, flag, transaction, path) =>
      `${tick(name)} releases its lock ${tick(flag)} before ${transaction} commits, so the next holder may read old data${path}. Fix: acquire the lock first, and run the transaction inside it. If the lock is in the same PostgreSQL database, you can also call \`currentLock().guard(...)\` in the locked body, on the connection of the transaction.`,
  ],
  needNotMet: [
    "LW1510",
    (name, flag, path, first) =>
      `${tick(name)} needs its callers to hold the lock ${tick(flag)}, but nothing on this path acquires it: ${path}. Fix: write \`@redisLock\` on a function of the path, or call it inside \`withLock()\`. If the callers of ${tick(first)} hold the lock, write \`@needsLock\` there, too.`,
  ],
  badPluginOption: ["LW1401", (found) => found],
} satisfies Record<string, [string, Text]>;

export type ProblemName = keyof typeof PROBLEMS;

/** Adds the texts that the author may mean, if there are any. */
export function replaceableBy(found: Problem, ...texts: readonly (string | undefined)[]): Problem {
  const replacements = texts.filter((text) => text !== undefined);
  return replacements.length === 0 ? found : { ...found, replacements };
}

export function problem(name: ProblemName, { start, end }: Span, ...words: string[]): Problem {
  const [code, text] = PROBLEMS[name] as [string, Text];
  return { start, end, code, message: text(...words) };
}
