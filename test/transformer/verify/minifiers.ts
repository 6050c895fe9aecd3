import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { minify as minifyByOxc } from "rolldown/experimental";
import { installed, type SetName } from "../../hosts/installed";
import type { SeededRandom } from "../../support/seeded-random";

/** Minifies or compiles code with random settings of a tool. */
export type Minify = (code: string, random: SeededRandom) => Promise<string>;

/** A tool that rewrites woven code. */
export interface Minifier {
  /** Loads the tool. It is installed first if it has a set in test/matrix/packages.json. */
  readonly load: () => Minify | Promise<Minify>;
  /** Whether only the matrix has it. */
  readonly isInMatrix: boolean;
  /** The functions of `SHAPES` whose locks do not count after it rewrote them, because it writes them in forms that nothing else uses. */
  readonly unread?: readonly string[];
}

type Settings = Record<string, unknown>;

/** Returns some of the switches, each turned on or off. The others keep their defaults. */
function some(random: SeededRandom, names: readonly string[], share = 0.3): Settings {
  const chosen = names.filter(() => random.happens(share));
  return Object.fromEntries(chosen.map((name) => [name, random.happens(0.5)]));
}

async function load(set: SetName, name: string): Promise<unknown> {
  return createRequire(join(await installed(set), "module.js"))(name) as unknown;
}

/** The switches of the compressors of terser and swc, except `booleans_as_integers`, which changes what a program does. */
const COMPRESS =
  "arguments arrows booleans collapse_vars comparisons computed_props conditionals dead_code drop_console evaluate expression hoist_funs hoist_props hoist_vars if_return join_vars keep_classnames keep_fargs keep_fnames keep_infinity loops module negate_iife properties pure_getters reduce_funcs reduce_vars side_effects switches toplevel typeofs unsafe unsafe_arrows unsafe_methods unused".split(
    " ",
  );

/** Settings of the minifiers of terser and swc. */
function compressing(random: SeededRandom): Settings {
  const oneAlone = { defaults: false, [COMPRESS[random.below(COMPRESS.length)] ?? ""]: true };
  const several = {
    ...some(random, COMPRESS),
    inline: random.below(4),
    passes: 1 + random.below(3),
    sequences: random.happens(0.7),
  };
  const compress = random.happens(0.3) ? oneAlone : several;
  return {
    compress: random.happens(0.9) && compress,
    mangle: random.happens(0.5),
    module: random.happens(0.7),
    toplevel: random.happens(0.5),
    ecma: random.oneOf(5, 2015, 2020),
  };
}

async function terser(): Promise<Minify> {
  const { minify } = (await load("terser", "terser")) as {
    readonly minify: (code: string, settings: Settings) => Promise<{ readonly code: string }>;
  };
  return async (code, random) => (await minify(code, compressing(random))).code;
}

async function swc(): Promise<Minify> {
  type Run = (code: string, settings: Settings) => Promise<{ readonly code: string }>;
  const { minify, transform: compile } = (await load("swc", "@swc/core")) as {
    readonly minify: Run;
    readonly transform: Run;
  };
  return async (code, random) => {
    const target = random.oneOf("es2015", "es2017", "es2020", "es2022");
    const type = random.oneOf("es6", "commonjs");
    const jsc = { target, parser: { syntax: "ecmascript" } };
    const compiled = await compile(code, { module: { type }, jsc });
    if (random.happens(0.2)) return compiled.code;
    return (await minify(compiled.code, { ...compressing(random), module: type === "es6" })).code;
  };
}

async function babel(): Promise<Minify> {
  const { transformAsync } = (await load("jest-30", "@babel/core")) as {
    readonly transformAsync: (code: string, settings: Settings) => Promise<{ readonly code: string }>;
  };
  return async (code, random) => {
    const targets = { chrome: random.oneOf(50, 60, 80, 100) };
    const modules = random.oneOf<string | false>("commonjs", false);
    const preset = ["@babel/preset-env", { targets, modules, loose: random.happens(0.5) }];
    const settings = { presets: [preset], minified: random.happens(0.5), compact: false };
    const cwd = await installed("jest-30");
    return (await transformAsync(code, { ...settings, cwd, configFile: false, babelrc: false })).code;
  };
}

/** The settings that hide no names of properties and no texts. Otherwise nobody can read the locks in the output. */
async function obfuscator(): Promise<Minify> {
  const { obfuscate } = (await load("obfuscator", "javascript-obfuscator")) as {
    readonly obfuscate: (code: string, settings: Settings) => { getObfuscatedCode: () => string };
  };
  const switches = [
    "compact",
    "simplify",
    "splitStrings",
    "renameGlobals",
    "selfDefending",
    "unicodeEscapeSequence",
  ];
  return async (code, random) => {
    const names = random.oneOf("hexadecimal", "mangled", "mangled-shuffled");
    const hiding = { stringArray: false, identifierNamesGenerator: names, seed: 1 + random.below(1_000) };
    return obfuscate(code, { ...some(random, switches, 0.8), ...hiding }).getObfuscatedCode();
  };
}

async function closure(): Promise<Minify> {
  const compiler = join(await installed("closure"), "google-closure-compiler-linux/compiler");
  return async (code, random) => {
    const dir = await mkdtemp(join(tmpdir(), "closure-"));
    const script = code
      .replace(/import \* as (\w+) from "([^"]+)"/, 'const $1 = require("$2")')
      .replaceAll(/^export /gm, "");
    const exported = [...code.matchAll(/^export (?:async )?(?:class|function\*?|const) (\w+)/gm)];
    const lines = exported.map(([, name]) => `exports.${name} = ${name};`);
    const file = join(dir, "woven.js");
    await writeFile(file, [script, ...lines].join("\n"));
    const level = random.oneOf("SIMPLE", "SIMPLE", "WHITESPACE_ONLY");
    const language = random.oneOf("ECMASCRIPT_2015", "ECMASCRIPT_2017", "ECMASCRIPT_2021", "ECMASCRIPT_NEXT");
    const args = [
      "--js",
      file,
      "-O",
      level,
      "--language_out",
      language,
      "--warning_level",
      "QUIET",
      "--env",
      "CUSTOM",
    ];
    const { stdout } = await promisify(execFile)(compiler, args);
    await rm(dir, { recursive: true });
    return stdout;
  };
}

function esbuild(): Minify {
  const switches = ["minifySyntax", "minifyWhitespace", "minifyIdentifiers", "keepNames", "treeShaking"];
  return async (code, random) => {
    const target = random.oneOf("es2015", "es2017", "es2020", "esnext");
    const format = random.oneOf("esm" as const, "cjs" as const);
    return (await transform(code, { ...some(random, switches, 0.8), target, format })).code;
  };
}

function oxc(): Minify {
  const switches = ["unused", "joinVars", "sequences"];
  return async (code, random) => {
    const target = random.oneOf("es2017", "es2020", "esnext");
    const compress = random.happens(0.8) && { ...some(random, switches, 0.5), target };
    const mangle = random.happens(0.5) && { toplevel: random.happens(0.5), keepNames: random.happens(0.5) };
    const codegen = { removeWhitespace: random.happens(0.5) };
    return (await minifyByOxc("woven.js", code, { module: true, compress, mangle, codegen })).code;
  };
}

export const MINIFIERS: Readonly<Record<string, Minifier>> = {
  esbuild: { load: esbuild, isInMatrix: false },
  "rolldown's minifier": { load: oxc, isInMatrix: false },
  terser: { load: terser, isInMatrix: true },
  swc: { load: swc, isInMatrix: true },
  Babel: { load: babel, isInMatrix: true },
  "javascript-obfuscator": { load: obfuscator, isInMatrix: true },
  "Closure Compiler": { load: closure, isInMatrix: true, unread: ["refund", "close"] },
};
