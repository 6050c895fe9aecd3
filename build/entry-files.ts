import * as cron from "../runtime/cron";
import * as index from "../runtime/index";
import * as nest from "../runtime/nest";
import * as testing from "../runtime/testing";
import { refusalIn, UNSUPPORTED, type Unsupported } from "../runtime/base/unsupported";
import * as wovenEntry from "../runtime/woven/entry";

// Generates the files through which applications load the runtime. Each file lists exports of the one object that all copies of the package
// share. The files spell out the names, because compilers, bundlers, and Node read them from the text.

/** The names that only woven code uses. `lockweave` exports them too, for woven code of an older version, but its types hide them. */
const WOVEN_ONLY = Object.keys(wovenEntry).filter((name) => !(name in index));

const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  index: [...Object.keys(index), ...WOVEN_ONLY],
  testing: Object.keys(testing),
};

/**
 * The entries with a file of their own, which `lockweave` does not load. They import only public names of the runtime.
 */
export const OWN_FILES: Readonly<Record<string, readonly string[]>> = {
  cron: Object.keys(cron),
  nest: Object.keys(nest),
};

const ENTRY_NAMES = [...Object.keys(ENTRIES), ...Object.keys(OWN_FILES), "opentelemetry"];

/** Returns the text of the module in `runtime/` that has all exports. */
export function wholeModule(): string {
  const names = [...new Set(Object.values(ENTRIES).flat())];
  const fromTesting = Object.keys(testing).filter((name) => !(name in index));
  return `import { shareWithCopies } from "./base/copies";
import {${list(Object.keys(index))}} from "./index";
import { observeLocksWith } from "./diagnostics/observe-locks";
import {${list(fromTesting)}} from "./testing";
import {${list(WOVEN_ONLY)}} from "./woven/entry";
export const whole = shareWithCopies({${list([...names, "observeLocksWith"])}});
`;
}

/** Returns the text of each entry file, by file name. */
export function entryFiles(): Record<string, string> {
  const files: Record<string, string> = {
    "opentelemetry.js": OPENTELEMETRY_COMMONJS,
    "opentelemetry.mjs": OPENTELEMETRY_MODULE,
    "opentelemetry.d.mts": declarations("opentelemetry"),
    "woven/entry.d.mts": declarations("entry"),
  };
  for (const name of Object.keys(OWN_FILES)) files[`${name}.d.mts`] = declarations(name);
  for (const [name, names] of Object.entries(ENTRIES)) {
    files[`${name}.js`] = commonjs(names) + (name === "index" ? TS_PATCH : "");
    files[`${name}.mjs`] = `${WHOLE_OF_MODULE}export const {${list(names)}} = whole;\n`;
    files[`${name}.d.mts`] = declarations(name) + (name === "index" ? WOVEN_TYPES : "");
  }
  return { ...files, ...refusals() };
}

/**
 * Returns the entry files for environments where Lockweave cannot run. The modules have the exports of all entries, because bundlers check
 * the imported names before the error can be thrown.
 */
function refusals(): Record<string, string> {
  const all = [...Object.values(ENTRIES), ...Object.values(OWN_FILES), ["observeLocks"]];
  const names = [...new Set(all.flat())];
  const files: Record<string, string> = {};
  for (const place of Object.keys(UNSUPPORTED) as Unsupported[]) {
    const error = `throw new Error(${JSON.stringify(refusalIn(place))});\n`;
    files[`not-in-${place}.mjs`] = `export const {${list(names)}} = (() => {\n  ${error}})();\n`;
    if (place !== "browser") files[`not-in-${place}.js`] = error;
    else for (const name of ENTRY_NAMES) files[`${name}.not-in-browser.js`] = outsideNode(name, error);
  }
  return files;
}

/**
 * Returns an entry that works in Node and throws elsewhere. Jest with jsdom requires the browser entry, but runs it in Node. `Reflect`
 * hides the `require` call from bundlers.
 */
function outsideNode(name: string, error: string): string {
  return `const load = globalThis.process?.versions?.node && Reflect.get(module, "require");
if (typeof load !== "function") ${error}module.exports = load.call(module, "./${name}.js");
`;
}

/** Re-exports the types of the CommonJS build, so that a class has the same type however it is imported. */
function declarations(name: string): string {
  return `export * from "./${name}.js";\n`;
}

/** Adds the types of woven code to each program that imports `lockweave`, as `runtime/index.ts` does for CommonJS. */
const WOVEN_TYPES = `export type {} from "./woven/entry.mjs";
`;

function commonjs(names: readonly string[]): string {
  const exported = names.map((name) => `exports.${name} = whole.${name};\n`);
  return WHOLE_OF_COMMONJS + exported.join("");
}

function list(names: readonly string[]): string {
  return names.map((name) => `\n  ${name},`).join("") + "\n";
}

const WHOLE_OF_COMMONJS = `Object.defineProperty(exports, Symbol.toStringTag, { value: "Module" });
const { whole } = require("./runtime.js");
`;
const WHOLE_OF_MODULE = `import { whole } from "./runtime.mjs";
`;

/**
 * Makes `{ "transform": "lockweave" }` work in ts-patch, which looks for the plugin's function in `default`. The code defines the property
 * dynamically, so neither bundlers nor Node see an export.
 */
const TS_PATCH = `const plugin = "default";
Object.defineProperty(exports, plugin, { get: () => module.require("../transformer") });
`;

const OPENTELEMETRY_COMMONJS = `${WHOLE_OF_COMMONJS}const api = require("@opentelemetry/api");
exports.observeLocks = function observeLocks(options = {}) {
  return whole.observeLocksWith(api, options);
};
`;

const OPENTELEMETRY_MODULE = `import { metrics, SpanStatusCode, trace } from "@opentelemetry/api";
${WHOLE_OF_MODULE}const api = { metrics, SpanStatusCode, trace };
export function observeLocks(options = {}) {
  return whole.observeLocksWith(api, options);
}
`;
