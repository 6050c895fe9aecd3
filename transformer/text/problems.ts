import type { Span } from "./span";

/** What is wrong with a tag, at the exact words. */
export interface Problem extends Span {
  /** Stable: `LW1001`, ... */
  readonly code: string;
  readonly message: string;
}

type Text = (...words: string[]) => string;

const tick = (word: string): string => `\`${word}\``;

/** Every diagnostic of the transformer. A code, once given, keeps its meaning. */
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
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Each tag has a line of its own: write ${tick(found)} on another line.`,
  ],
  colon: [
    "LW1001",
    (found) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. Between a name and its value stands \`=\`.`,
  ],
  noValue: ["LW1001", (name) => `Expected a value after ${tick(name)}, such as \`${name}=true\`.`],
  unitApart: [
    "LW1001",
    (found, value, unit) =>
      `Expected an attribute such as \`keyName=orderNo\`, found ${tick(found)}. A unit stands right behind its number: ${tick(value + unit)}.`,
  ],
  unknownAttribute: ["LW1002", (name, hint) => `There is no attribute ${tick(name)}.${hint}`],
  duplicateAttribute: ["LW1003", (name) => `The attribute ${tick(name)} is given twice.`],
  missingValue: ["LW1004", (name) => `Expected a value after \`${name}=\`.`],
  missingItem: ["LW1005", (name) => `Expected another value after the comma in \`${name}=\`.`],
  strayComma: [
    "LW1005",
    (name) =>
      `Expected another value after the comma in \`${name}=\`. Between attributes there are blanks, no commas.`,
  ],
  unterminatedQuote: [
    "LW1006",
    (quote) => `This quote is not closed: expected another ${quote} before the end of the tag.`,
  ],
  misspeltTag: ["LW1007", (found) => `There is no tag ${tick(found)}. Did you mean \`@redisLock\`?`],
  notJsDoc: ["LW1008", () => "`@redisLock` works in a JSDoc comment only: begin the comment with `/**`."],
  notAtLineStart: ["LW1009", () => "`@redisLock` must stand at the start of its line in the comment."],
  twoTags: [
    "LW1010",
    () => "One function takes one `@redisLock`. For a lock on several values, list them: `keyName=a,b`.",
  ],
  inParentheses: [
    "LW1011",
    () => "The attributes stand behind the tag without parentheses: `@redisLock businessFlag=payOrder`.",
  ],

  semicolon: [
    "LW1012",
    (found) =>
      `Expected a value, got ${tick(found)}. Between attributes there are blanks, no semicolons; a value that has one stands in quotes.`,
  ],

  attributesAlone: [
    "LW1013",
    () =>
      "These are attributes of a lock, but the comment has no `@redisLock`, so the function runs unlocked. Fix: write `@redisLock` before them, or put them in backticks if they are prose.",
  ],

  // The attributes' values.
  missingFlag: [
    "LW1101",
    () => "`@redisLock` needs `businessFlag=`, the namespace of its keys, or `key=`, the whole of one.",
  ],
  badFlag: [
    "LW1102",
    (found) => `Expected \`businessFlag\` to be one printable, non-empty text, got ${tick(found)}.`,
  ],
  oneValue: ["LW1103", (name) => `Expected one value for ${tick(name)}, got a list.`],
  badDuration: [
    "LW1104",
    (name, found, expected) => `Expected ${tick(name)} to be ${expected}, got ${tick(found)}.`,
  ],
  badCount: [
    "LW1105",
    (name, found, most) =>
      `Expected ${tick(name)} to be a whole number from 0 to ${most}, got ${tick(found)}.`,
  ],
  badBoolean: [
    "LW1106",
    (name, found) => `Expected ${tick(name)} to be \`true\` or \`false\`, got ${tick(found)}.`,
  ],
  badKeyType: [
    "LW1107",
    (found, hint) =>
      `Expected \`keyType\` to be \`VALUE\`, \`CLASS\` or \`JSON\`, got ${tick(found)}.${hint}`,
  ],
  badOnFailure: [
    "LW1108",
    (found, hint) =>
      `Expected \`onFailure\` to be \`throw\`, \`skip\` or the name of an error class, got ${tick(found)}.${hint}`,
  ],
  badKeyClass: [
    "LW1109",
    (found) => `Expected \`keyClass\` to be the name of a class or an interface, got ${tick(found)}.`,
  ],
  badOnLost: ["LW1110", (found) => `Expected \`onLost\` to be \`throw\` or \`warn\`, got ${tick(found)}.`],
  implausibleDuration: [
    "LW1111",
    (attribute, as, other) =>
      `${tick(attribute)} is ${as}. If that is meant, write the unit; if not, ${tick(other)} may be.`,
  ],
  badStore: [
    "LW1112",
    (found) =>
      `Expected \`store\` to be a name among \`configure({ stores })\`, of letters, digits, \`-\` and \`_\`, got ${tick(found)}.`,
  ],
  unknownStore: [
    "LW1113",
    (found, there) =>
      `There is no store ${tick(found)}: the sources give \`configure()\` ${there}. The application will fail at its start.`,
  ],
  badRelease: [
    "LW1114",
    (found) => `Expected \`release\` to be \`awaited\` or \`background\`, got ${tick(found)}.`,
  ],
  badMode: ["LW1120", (found) => `Expected \`mode\` to be \`read\` or \`write\`, got ${tick(found)}.`],
  badPermits: [
    "LW1121",
    (found, most) => `Expected \`permits\` to be a whole number from 1 to ${most}, got ${tick(found)}.`,
  ],
  modeAndPermits: [
    "LW1122",
    () =>
      "A lock has either a `mode`, and as many who read as there are, or `permits`: so many at once. Leave out one of the two.",
  ],
  fencingBesideOthers: [
    "LW1123",
    () =>
      "`fencing` needs a lock that is held alone: a token tells who came later, and with `mode=read` or `permits` several are there at once. Leave out one of the two.",
  ],

  sharedOtherwise: [
    "LW1124",
    (words, others, site) =>
      `${tick(words)} here, and ${tick(others)} at ${tick(site)} for what may be the same key: the smaller number would count. Make them the same, or give one of them another \`businessFlag\`.`,
  ],

  refusedPair: [
    "LW1130",
    (one, other, because) =>
      `${tick(one)} and ${tick(other)} do not go together: ${because}. Leave out one of the two.`,
  ],
  longerThanLockTime: [
    "LW1131",
    (name, lockTime) =>
      `Expected ${tick(name)} to be at most \`lockTime\`, after which the key of a process that died is free: ${tick(`lockTime=${lockTime}`)}.`,
  ],
  shorterThanLockTime: [
    "LW1132",
    (name, lockTime) =>
      `Expected ${tick(name)} to be at least \`lockTime\`: ${tick(`lockTime=${lockTime}`)}.`,
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
  needsKeyName: ["LW1207", (name) => `${tick(name)} needs \`keyName=\`, the parameter that it speaks of.`],
  oneKeyName: [
    "LW1208",
    (type) =>
      `\`keyType=${type}\` takes one \`keyName\`. For several fields of it, list them in \`fieldName=a,b\`.`,
  ],
  classNeedsType: ["LW1209", () => "`keyClass` needs `keyType=CLASS` or `keyType=JSON`."],

  unclosedValue: ["LW1210", () => "This `${` is not closed: expected a parameter or a path, and `}`."],
  badValue: [
    "LW1211",
    (found) =>
      `Expected a parameter, a path such as \`order.user.id\` or another expression in \`\${...}\`, got ${tick(found)}. For several, write several \`\${...}\` with a text between them.`,
  ],
  adjacentValues: [
    "LW1212",
    () =>
      'Expected a text between two values, such as `:`. Without one, "1" and "23" make the same key as "12" and "3".',
  ],
  badWholeKey: [
    "LW1213",
    (found) => `Expected \`key\` to be a printable, non-empty text on one line, got ${tick(found)}.`,
  ],
  reservedKey: [
    "LW1214",
    (namespace) =>
      `No lock may have a key that begins with ${tick(namespace)}: there the queues of locks are.`,
  ],
  keyIsText: [
    "LW1215",
    (key) =>
      `${tick(`key=${key}`)} is that text, the same for every call. For the value of ${tick(key)}, write ${tick(`key="...:\${${key}}"`)}, or \`businessFlag=... keyName=${key}\`.`,
  ],

  // The place of the tag.
  notAFunction: ["LW1301", (found) => `\`@redisLock\` locks functions, and this is ${found}.`],
  functionElsewhere: [
    "LW1301",
    (found) =>
      `\`@redisLock\` locks functions, and this is ${found}. The function itself is not in sight here, and would run unlocked: put the tag on its declaration.`,
  ],
  notAsync: [
    "LW1302",
    (name, ...types) =>
      `${tick(name)} cannot wait for a lock: make it \`async\`${types.map((type) => `, or give it the return type ${tick(type)}`).join("")}.`,
  ],
  ownPromise: [
    "LW1314",
    (name) =>
      `${tick(name)} cannot wait for a lock: it returns a \`Promise\` of this file's own, and a locked function returns the global one. Make it \`async\`.`,
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
    () => "A synchronous generator cannot wait for a lock: make it an `async` generator.",
  ],
  dangling: ["LW1307", () => "This `@redisLock` stands before nothing that it could lock."],
  severalVariables: [
    "LW1308",
    () => "`@redisLock` before several variables is ambiguous. Declare the function alone.",
  ],
  notAModule: [
    "LW1309",
    () => "`@redisLock` works in modules only: this file has no import and no export. Add `export {}`.",
  ],
  redeclaredParameter: [
    "LW1310",
    (name) =>
      `The body becomes a function of its own, since it is reentrant or returns a promise under \`try\`: rename the \`var ${name}\` in it, which would hide the parameter.`,
  ],
  duplicateParameter: ["LW1312", (name) => `Duplicate identifier ${tick(name)}: a parameter has this name.`],
  reentrantGenerator: [
    "LW1311",
    () =>
      "A generator cannot be `reentrant`: its body cannot become a function of its own. Write `reentrant=false`.",
  ],
  readingGenerator: [
    "LW1314",
    () =>
      "A generator cannot have `mode=read`: its body cannot become a function of its own, in which one who asks to write is refused. Lock what it calls.",
  ],
  duplicateInGenerator: [
    "LW1313",
    (name) =>
      `The body of a generator becomes a block, and there ${tick(name)} may be declared once only: rename one of the two.`,
  ],

  // The project.
  unparsed: ["LW1402", () => "This file does not parse: it is not woven, and refuses to run."],
  unlockedDependency: [
    "LW1403",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\`, and ${tick(file)} does not hold the lock: it was built without the weave, or from other sources. Fix: build it again with \`npx tspc -b --force\`, and with { "transform": "lockweave/transformer", "transformProgram": true } among the \`plugins\` in its own tsconfig.json. \`npx lockweave init\` in its directory sets this up.`,
  ],
  tagInComponent: [
    "LW1404",
    () =>
      "A tag in a component would be lost with its comment, so it is not taken: move the function into a `.ts` or `.js` file, and import it.",
  ],
  tagLostBefore: [
    "LW1404",
    (name) =>
      `${tick(name)} would run without its lock: another plugin loaded this file, and left out the comment with the tag. Fix: let that plugin keep comments (no \`removeComments\`), use one that compiles in its \`transform\`, or put Lockweave's plugin before it.`,
  ],
  tagNotSeen: [
    "LW1404",
    (name, cure) =>
      `${tick(name)} would run without its lock: this file never came to Lockweave's plugin. Fix: ${cure}.`,
  ],
  handshakeAsValue: [
    "LW1405",
    (called) =>
      `A call of what is handed on here is not told that the build was woven, and fails with LOCK_NOT_WOVEN. Call ${tick(called)} by a name that this file has for it: \`${called}({ ... })\`, \`locks.${called}({ ... })\` of a module \`locks\`, or \`const start = ${called}; start({ ... })\`.`,
  ],
  handshakeSpread: [
    "LW1405",
    (called) =>
      `A call with a spread is not told that the build was woven, and fails with LOCK_NOT_WOVEN. Call ${tick(called)} with one argument: \`${called}({ ... })\`.`,
  ],
  handedOutAsSource: [
    "LW1406",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\` from ${tick(file)}, the TypeScript that a linked package hands out as it is. This build does not emit it, and Node, or a bundler behind the build, runs it without its lock. Let the package hand out what \`tspc\` makes of it, or take in its types alone, with \`import type\`. Where Lockweave's plugin bundles this, or \`lockweave/register\` loads it, allow it here, with the reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  installedAsSource: [
    "LW1406",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\` from ${tick(file)}, the TypeScript that an installed package hands out as it is. What is in \`node_modules\` nobody weaves, so what bundles or runs this runs it without its lock. Let the package hand out what \`tspc\` makes of it, or take in its types alone, with \`import type\`.`,
  ],
  loadedAsSource: [
    "LW1406",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\` from ${tick(file)}. \`paths\` leads the compiler to that file, but the output still imports the package, and the package exports its TypeScript, which Node runs without the lock. Fix: let the package export what \`tspc\` makes of it. If a tool rewrites the paths in the output, or \`lockweave/register\` loads the package, allow it here, with the reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  loadedFromPackage: [
    "LW1406",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\`. \`paths\` leads the compiler to the source, but the output still imports the package, and its ${tick(file)} does not hold the lock. Fix: build the package with \`tspc\`. If a tool rewrites the paths in the output, allow it here, with the reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  scriptAside: [
    "LW1406",
    (names, file) =>
      `This takes in ${names} with \`@redisLock\` from ${tick(file)}, JavaScript that this build does not emit, and so does not weave. Set \`allowJs\`, and remove a \`.d.ts\` beside it. Where \`lockweave/register\` loads it, allow it here, with the reason: \`// lockweave-allow LW1406: ...\`.`,
  ],
  nestedTooDeeply: [
    "LW1408",
    () =>
      "An expression in this file is nested too deeply to be woven, so the file refuses to run. Fix: split the longest chain of operators or calls into several statements, or move it into a file without a tag.",
  ],
  emittedUnlocked: [
    "LW1407",
    (name, caller) =>
      `${tick(name)} would run without its lock. Only compilers get woven code from a patched TypeScript, and ${caller} is not one that Lockweave knows. Fix: build with \`tspc\` or \`nest build\`, use Lockweave's plugin for your bundler, or give this tool \`ts-patch/compiler\` as its TypeScript.`,
  ],

  unsupportedPlace: [
    "LW1409",
    (name, where, why, fix) =>
      `${tick(name)} is in a build that runs ${where}. Lockweave cannot run there. ${why}. Fix: ${fix}.`,
  ],

  // What the tagged functions of a program do to each other.
  lockOrder: [
    "LW1501",
    (flags, paths) =>
      `${flags} are taken in different orders, so callers can wait for each other until their budgets are spent: ${paths}. Take them in one order everywhere.`,
  ],
  waitsForItself: [
    "LW1502",
    (name, flag, path, cure) => `${tick(name)} waits for its own lock ${tick(flag)}: ${path}. ${cure}`,
  ],
  mayWaitForItself: [
    "LW1502",
    (name, flag, path, cure) =>
      `${tick(name)} holds ${tick(flag)} and waits for another lock of that flag: ${path}. With the same key it waits for itself, and with keys in different orders callers wait for each other. ${cure}`,
  ],
  outlivesLock: [
    "LW1503",
    (what, name) =>
      `${what}: it may still run when \`${name}\` has given its lock back. Wait for it before the end of the body, or start it when the lock is released.`,
  ],
  outlastsLock: [
    "LW1504",
    (name, ends, other, budget, path) =>
      `The lock of ${tick(name)} is over after ${ends}, and inside it ${tick(other)} may be waited for as long as ${budget}: ${path}. Give that one a shorter \`waitTime\`, or this one more time.`,
  ],
  keysNeverMeet: [
    "LW1505",
    (flag, here, there, name, why) =>
      `The keys of ${tick(flag)} here and at ${tick(name)} can never be the same, so neither waits for the other: ${here} here, ${there} there${why}. Make them the same, or give one of them another \`businessFlag\`.`,
  ],
  similarFlag: [
    "LW1506",
    (flag, other, name) =>
      `The flag ${tick(flag)} is used here alone, and ${tick(other)} at ${tick(name)}: is it the same? Keys of different flags never meet.`,
  ],
  untaggedOverride: [
    "LW1507",
    (name, other) =>
      `${tick(name)} overrides ${tick(other)}, which is locked, and has no lock itself: a tag is not inherited. Tag it, too, or call the other one.`,
  ],
  untaggedSibling: [
    "LW1507",
    (name, member, other) =>
      `${tick(name)} implements ${tick(member)} without a lock, and ${tick(other)} with one: a tag is not inherited. Tag it, too.`,
  ],
  allowedWithoutReason: [
    "LW1508",
    (code) =>
      `Expected a reason after \`lockweave-allow ${code}\`: \`// lockweave-allow ${code}: the audit trail may be late\`.`,
  ],
  badPluginOption: ["LW1401", (found) => found],
} satisfies Record<string, [string, Text]>;

export type ProblemName = keyof typeof PROBLEMS;

export function problem(name: ProblemName, { start, end }: Span, ...words: string[]): Problem {
  const [code, text] = PROBLEMS[name] as [string, Text];
  return { start, end, code, message: text(...words) };
}
