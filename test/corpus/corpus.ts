import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import ts from "typescript";
import { weaveProgram } from "../../transformer/hosts/ts-patch/weave-program";
import type { Parser } from "../../transformer/parser/parser";
import { weave } from "../../transformer/weave/weave";
import { tagAll } from "./tag-all";

// npm run corpus [-- package ...]
//
// Packages of others that ship their TypeScript sources: every function that can be locked gets a tag, and
// the whole is woven. Nothing may be refused, no error may come up that was not there before, and what the
// package says of its types must stay the same to the byte.

interface Package {
  readonly name: string;
  readonly version: string;
  /** Where its sources are. */
  readonly sources: string;
  /** What it does not install by itself, and needs to be compiled. */
  readonly also?: readonly string[];
  /** Where a reentrant body is known to be checked otherwise. */
  readonly known?: readonly string[];
  /** The same of every body. */
  readonly knownAlways?: readonly string[];
}

const PACKAGES: readonly Package[] = [
  {
    name: "viem",
    version: "2.55.0",
    sources: ".",
    // A method without a return type, whose literal is to be a template literal type by its context.
    known: [
      "new: account-abstraction/accounts/implementations/toSimple7702SmartAccount.ts(165,64) TS2322",
      "new: account-abstraction/accounts/implementations/toSoladySmartAccount.ts(106,3) TS2322",
      "new: account-abstraction/accounts/implementations/toSoladySmartAccount.ts(170,64) TS2322",
    ],
  },
  { name: "ethers", version: "6.17.0", sources: "src.ts" },
  { name: "msw", version: "2.15.0", sources: "src" },
  { name: "@atproto/api", version: "0.19.19", sources: "src" },
  { name: "@trpc/server", version: "11.25.2", sources: "src" },
  { name: "@trpc/client", version: "11.25.2", sources: "src", also: ["@trpc/server@11.25.2"] },
  { name: "@tanstack/query-core", version: "5.108.0", sources: "src" },
  { name: "workbox-strategies", version: "7.4.1", sources: "src" },
  { name: "datastore-core", version: "12.0.1", sources: "src" },
  {
    name: "@libp2p/kad-dht",
    version: "16.4.5",
    sources: "src",
    // A function without a `return` that is to be a `() => Promise<undefined>`: the compiler lets it be one by
    // its context, which does not reach through the call of runReentrant().
    known: ["new: query/query-path.ts(143,70) TS2345"],
  },
  { name: "@helia/unixfs", version: "8.0.5", sources: "src" },
  { name: "rxjs", version: "7.8.2", sources: "src" },
  {
    name: "puppeteer-core",
    version: "25.16.0",
    sources: "src",
    // A type that is inferred from functions of another file: the compiler writes into it whatever comments of this file
    // stand at the positions that those functions have in theirs. Without tags it does so, too, with others.
    knownAlways: ["injected/injected.ts: its declarations differ in line 36: "],
  },
  { name: "mongodb", version: "7.9.0", sources: "src" },
  {
    name: "@temporalio/client",
    version: "1.24.0",
    sources: "src",
    // The same types in another order: that of a union is the order in which the compiler met its members, and a
    // function that is an argument is looked into sooner.
    known: ["task-queue-client.ts: its declarations differ in line 101: "],
  },
  { name: "openai", version: "7.57.0", sources: "src" },
  { name: "@supabase/auth-js", version: "2.119.1", sources: "src" },
  {
    name: "@loopback/repository",
    version: "8.0.15",
    sources: "src",
    also: ["@loopback/core@7.0.15", "@types/lodash@4", "@types/json-schema@7"],
  },
  {
    name: "rxdb",
    version: "17.6.0",
    sources: "src",
    also: ["rxjs@7.8.2", "mongodb@7.6.0", "nats@2.29.3"],
    // A function without a return type, whose literal is to be one of two by its context.
    known: [
      "new: plugins/storage-sqlite/sqlite-storage-instance.ts(459,66) TS2345",
      "new: plugins/storage-sqlite/sqlite-storage-instance.ts(539,66) TS2345",
    ],
  },
  {
    name: "@stryker-mutator/core",
    version: "9.6.1",
    sources: "src",
    also: ["typescript@6.0.3", "@types/semver@7", "@types/lodash.groupby@4", "@types/json-schema@7"],
  },
];

const CACHE = path.join(tmpdir(), "lockweave-corpus");
const REPOSITORY = path.join(__dirname, "../..");

/** The parser that is published. */
const parts = require(path.join(REPOSITORY, "dist/transformer/parser/typescript.js")) as Parser;

/** What a tag says beyond its flag: each package is woven once with each. */
const ATTRIBUTES = ["", "reentrant=true"];

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts"],
  types: ["node"],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  strict: true,
  noImplicitReturns: true,
  useUnknownInCatchVariables: false,
  resolveJsonModule: true,
  allowImportingTsExtensions: true,
  rewriteRelativeImportExtensions: true,
  jsx: ts.JsxEmit.Preserve,
  declaration: true,
  skipLibCheck: true,
  paths: {
    lockweave: [path.join(REPOSITORY, "runtime/index.ts")],
    "lockweave/runtime": [path.join(REPOSITORY, "runtime/index.ts")],
  },
};

interface Result {
  readonly woven: number;
  readonly errorsBefore: number;
  readonly complaints: readonly string[];
}

function main(): void {
  const wanted = process.argv.slice(2);
  let total = 0;
  let failed = 0;
  for (const found of PACKAGES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const root = install(found);
    for (const attributes of ATTRIBUTES) {
      const started = performance.now();
      const { woven, errorsBefore, complaints } = check(found, root, attributes);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      const what = `${found.name}@${found.version} ${attributes}`.trim();
      console.log(`${what}: ${woven} functions woven, ${errorsBefore} errors before, ${seconds} s`);
      for (const complaint of complaints.slice(0, 20)) console.log(`  ${complaint}`);
      total += woven;
      failed += complaints.length;
    }
  }
  console.log(`${total} functions woven, ${failed} complaints`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** The package's sources, in a project of their own beside what they depend on. */
function install({ name, version, sources, also = [] }: Package): string {
  const project = path.join(CACHE, `${name}@${version}`.replaceAll("/", "+"));
  const root = path.join(project, "package");
  if (existsSync(path.join(root, "package.json"))) return path.join(root, sources);
  mkdirSync(project, { recursive: true });
  writeFileSync(path.join(project, "package.json"), '{ "private": true }');
  const packages = [`${name}@${version}`, "@types/node@20", ...also];
  const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", ...packages];
  execFileSync("npm", args, { cwd: project, stdio: ["ignore", "ignore", "inherit"] });
  cpSync(path.join(project, "node_modules", name), root, { recursive: true });
  return path.join(root, sources);
}

function sourcesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.[cm]?tsx?$/.test(file) && !/\.d\.[cm]?ts$/.test(file))
    .filter((file) => !/(?:^|\/)(?:node_modules|__tests__|test|_test|_tests)\/|\.(?:test|spec)\./.test(file))
    .map((file) => path.join(root, file));
}

function check({ known = [], knownAlways = [] }: Package, root: string, attributes: string): Result {
  const tagged = new Map<string, string>();
  let tags = 0;
  for (const file of sourcesIn(root)) {
    const { text, count } = tagAll(file, readFileSync(file, "utf8"), `businessFlag=corpus ${attributes}`);
    tagged.set(path.normalize(file), text);
    tags += count;
  }
  const settings = { ...OPTIONS, rootDir: "/", outDir: path.join(root, "out") };
  const host = ts.createCompilerHost(settings);
  const { readFile } = host;
  host.readFile = (fileName) => tagged.get(path.normalize(fileName)) ?? readFile(fileName);
  const plain = ts.createProgram({ rootNames: [...tagged.keys()], options: settings, host });
  const woven = weaveProgram(plain, host, { transformProgram: true }, { ts: ts as never });

  const complaints: string[] = [];
  const before = errorsOf(plain, root, tagged);
  const after = errorsOf(woven, root, tagged);
  for (const error of after) if (!before.has(error)) complaints.push(`new: ${error}`);
  for (const error of before) if (!after.has(error)) complaints.push(`gone: ${error}`);
  complaints.push(...differences(declarationsOf(plain, tagged), declarationsOf(woven, tagged), root));
  let sites = 0;
  for (const [file, text] of tagged) {
    const first = weave(file, text, { ts, module: "esm" });
    if (weave(file, text, { ts: parts, module: "esm" })?.code !== first?.code) {
      complaints.push(`${path.relative(root, file)} is woven otherwise with the parser of the package`);
    }
    sites += first?.sites.length ?? 0;
    if (first !== undefined && weave(file, first.code, { ts, module: "esm" }) !== undefined) {
      complaints.push(`${path.relative(root, file)} is woven a second time`);
    }
  }
  if (sites !== tags) complaints.push(`${tags} tags, but ${sites} functions woven`);
  const isKnown = (complaint: string): boolean =>
    [...knownAlways, ...(attributes === "" ? [] : known)].some((start) => complaint.startsWith(start));
  return {
    woven: sites,
    errorsBefore: before.size,
    complaints: complaints.filter((complaint) => !isKnown(complaint)),
  };
}

function errorsOf(program: ts.Program, root: string, files: ReadonlyMap<string, string>): Set<string> {
  const errors = new Set<string>();
  for (const fileName of files.keys()) {
    const file = program.getSourceFile(fileName);
    const found = [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
      ...program.getDeclarationDiagnostics(file),
    ];
    for (const { start = 0, code, messageText } of found) {
      const before = files.get(path.normalize(fileName))?.slice(0, start).split("\n") ?? [];
      const place = `${path.relative(root, fileName)}(${before.length},${(before.at(-1)?.length ?? 0) + 1})`;
      errors.add(`${place} TS${code} ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
    }
  }
  return errors;
}

function declarationsOf(program: ts.Program, files: ReadonlyMap<string, string>): Map<string, string> {
  const declarations = new Map<string, string>();
  for (const fileName of files.keys()) {
    const write = (_: string, text: string): void => void declarations.set(fileName, text);
    program.emit(program.getSourceFile(fileName), write, undefined, true);
  }
  return declarations;
}

function differences(before: Map<string, string>, after: Map<string, string>, root: string): string[] {
  return [...before].flatMap(([file, text]) => {
    const found = after.get(file)?.split("\n") ?? [];
    const line = text.split("\n").findIndex((expected, index) => expected !== found[index]);
    if (line === -1 && after.get(file) === text) return [];
    return [
      `${path.relative(root, file)}: its declarations differ in line ${line + 1}: ${text.split("\n")[line]} / ${found[line]}`,
    ];
  });
}

main();
