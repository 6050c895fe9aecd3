import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import ts from "typescript";

// Third-party packages that ship their TypeScript sources.

export interface Package {
  readonly name: string;
  readonly version: string;
  /** The folder of its sources. */
  readonly sources: string;
  /** Further packages that it needs to compile. */
  readonly also?: readonly string[];
  /** Known differences if the bodies are reentrant. A comment says why. */
  readonly known?: readonly string[];
  /** Known differences in every round. */
  readonly knownAlways?: readonly string[];
}

export const PACKAGES: readonly Package[] = [
  {
    name: "viem",
    version: "2.55.0",
    sources: ".",
    // A method without a return type, whose literal gets a template literal type from its context.
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
    // A function without a `return` that must be a `() => Promise<undefined>`. The compiler infers this from its context,
    // which does not reach through the call of runReentrant().
    known: ["new: query/query-path.ts(143,70) TS2345"],
  },
  { name: "@helia/unixfs", version: "8.0.5", sources: "src" },
  { name: "rxjs", version: "7.8.2", sources: "src" },
  {
    name: "puppeteer-core",
    version: "25.16.0",
    sources: "src",
    // A type that is inferred from functions of another file. The compiler inserts the comments of this file at the positions
    // that those functions have in theirs. It also does so without tags, with other comments.
    knownAlways: ["injected/injected.ts: its declarations differ in line 36: "],
  },
  { name: "mongodb", version: "7.9.0", sources: "src" },
  {
    name: "@temporalio/client",
    version: "1.24.0",
    sources: "src",
    // The same types in another order. The order of a union depends on when the compiler first visits its members, and it
    // visits a function earlier if it is an argument.
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
    // A function without a return type, whose literal gets one of two types from its context.
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

/** Services and frameworks for services, because only they have controllers, queues, and transactions. */
export const SERVICES: readonly Package[] = [
  { name: "@evershop/evershop", version: "2.2.1", sources: "src" },
  { name: "@loopback/rest", version: "15.0.16", sources: "src" },
  { name: "@fluidframework/server-lambdas", version: "7.0.1", sources: "src" },
  { name: "matrix-appservice-bridge", version: "11.2.0", sources: "src" },
  { name: "@temporalio/worker", version: "1.24.0", sources: "src" },
];

const CACHE = path.join(tmpdir(), "lockweave-corpus");
export const REPOSITORY = path.join(__dirname, "../..");

export const OPTIONS: ts.CompilerOptions = {
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
    "lockweave/runtime": [path.join(REPOSITORY, "runtime/woven/entry.ts")],
  },
};

/** Installs the package's sources in their own project, next to their dependencies. */
export function install({ name, version, sources, also = [] }: Package): string {
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

export function sourcesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.[cm]?tsx?$/.test(file) && !/\.d\.[cm]?ts$/.test(file))
    .filter((file) => !/(?:^|\/)(?:node_modules|__tests__|test|_test|_tests)\/|\.(?:test|spec)\./.test(file))
    .map((file) => path.join(root, file));
}
