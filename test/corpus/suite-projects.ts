import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Project } from "./suite-run";

/** A package that ships its sources and its tests. */
function packageOf(name: string, version: string): Pick<Project, "name" | "version" | "download"> {
  return {
    name,
    version,
    download(folder) {
      const pack = ["pack", "--silent", "--pack-destination", folder, `${name}@${version}`];
      const file = execFileSync("npm", pack, { encoding: "utf8" }).trim();
      execFileSync("tar", ["xzf", path.join(folder, file), "-C", folder, "--strip-components=1"]);
      // Some of them are not on npm. `also` names those that the tests need.
      const manifest = path.join(folder, "package.json");
      const fields = JSON.parse(readFileSync(manifest, "utf8")) as object;
      writeFileSync(manifest, JSON.stringify({ ...fields, devDependencies: {} }));
    },
  };
}

/**
 * The configurations of Vitest without and with locks.
 *
 * @param options common options, as text that ends in a comma
 * @param test common options in `test`, likewise
 */
function vitestConfigs(options = "", test = ""): Record<string, string> {
  return {
    "vitest.config.mjs": `export default { ${options} test: { ${test} } };`,
    "corpus.config.mjs": `
import lockweave from "lockweave/vite";
export default { ${options} plugins: [lockweave()], test: { ${test} setupFiles: ["./corpus-set-up.mjs"] } };
`,
  };
}

/** Its tests import the package by its name. This condition stands for its sources. */
const ZOD_OPTIONS =
  'resolve: { conditions: ["@zod/source"] }, ssr: { resolve: { conditions: ["@zod/source"] } },';

/** The tests of its async functions. All tests take five minutes for each round. */
const ZOD_TESTS = [
  "async-",
  "promise.test",
  "refine.test",
  "transform.test",
  "codec",
  "function.test",
  "hash.test",
];

const MSW_OPTIONS = 'resolve: { alias: { "#core": new URL("./src/core", import.meta.url).pathname } },';
const MSW_TEST_OPTIONS = 'globals: true, environmentOptions: { jsdom: { url: "http://localhost/" } },';

/** The options under which piscina compiles its sources. */
function tsconfigOf(plugins: readonly object[]): string {
  const compilerOptions = {
    target: "es2022",
    module: "commonjs",
    esModuleInterop: true,
    // Its declarations are for other versions of its dependencies, and it imports a file outside of its sources.
    noCheck: true,
    rootDir: "src",
    outDir: "dist",
    plugins,
  };
  return JSON.stringify({ compilerOptions, include: ["src"] });
}

/**
 * The tests that wait for the pool with `await`. Others block their thread until a task has run, or look at the pool in the tick in which they
 * call `run()`. A lock begins the body of `run()` in a later tick.
 */
const PISCINA_TESTS =
  "test/{async-context,fixed-queue,generics,issue-513,load-with-esm,messages,move-test,option-validation}.test.ts " +
  "test/{pool-close,pool-destroy,post-task,queues,ready-message}.test.ts";

/** The commands for the test runner of Node. */
function nodeTest(loader: string, files: string): Pick<Project, "report" | "control" | "woven"> {
  const options = "--test --test-reporter=tap --test-concurrency=1";
  const woven = `--import lockweave/register ${loader} --import ./corpus-set-up.mjs`;
  return {
    report: "tap",
    control: ["bash", "-c", `node ${loader} ${options} ${files}`],
    woven: ["bash", "-c", `node ${woven} ${options} ${files}`],
  };
}

/** The modules and the tests of a package in JavaScript. */
const JAVASCRIPT = /^(?:(?:lib|test)\/.*|[^/]*)\.js$/;

const MOCHA_REPORT = ["--recursive", "--exit", "--reporter=json", "--reporter-option=output={report}"];

const MOCHA = {
  report: "mocha",
  control: ["mocha", ...MOCHA_REPORT],
  woven: ["mocha", "--require=lockweave/register", "--require=./corpus-set-up.mjs", ...MOCHA_REPORT],
} as const;

/** Its tests import the sources of two packages that are next to it in its repository. */
const AUTOMERGE_OPTIONS = String.raw`resolve: { alias: [{ find: /^(?:\.\.\/)+(automerge-repo-[^/]+)\/src\/index\.js$/, replacement: "@automerge/$1" }] },`;

/** The published ones extend files that are not in the package. */
const NO_TSCONFIGS = { "tsconfig.json": "{}", "tsconfig.build.json": "{}", "tsconfig.tests.json": "{}" };

/** The transforms of a Jest configuration, without and with locks. */
function jestConfigs(
  transformer: unknown,
  others: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const transform = (value: unknown): object => ({ transform: { "\\.[jt]sx?$": value } });
  const woven = ["lockweave/jest", { transformer }];
  return {
    "corpus.control.json": JSON.stringify({ ...others, ...transform(transformer) }),
    "corpus.woven.json": JSON.stringify({
      ...others,
      ...transform(woven),
      setupFiles: ["<rootDir>/corpus-set-up.js"],
    }),
  };
}

const VITEST = {
  report: "jest",
  control: ["vitest", "run", "--reporter=json", "--outputFile={report}"],
  woven: ["vitest", "run", "--config=corpus.config.mjs", "--reporter=json", "--outputFile={report}"],
} as const;

const JEST = {
  report: "jest",
  control: ["jest", "--config=corpus.control.json", "--json", "--outputFile={report}"],
  woven: ["jest", "--config=corpus.woven.json", "--json", "--outputFile={report}"],
} as const;

/** The packages of atproto, without the set-up file that is not in the package. */
const ATPROTO_CONFIGS = jestConfigs("@swc/jest", {
  moduleNameMapper: { "^(\\.\\.?\\/.+)\\.js$": ["$1.ts", "$1.js"] },
  // These tests of @atproto/crypto read a file that is not in the package.
  testPathIgnorePatterns: ["/node_modules/", "/signatures\\.test\\.ts$"],
});

const JEST_WITH_SWC = ["jest@28", "@swc/jest@0.2", "@swc/core@1"];

export const PROJECTS: readonly Project[] = [
  {
    ...packageOf("@atproto/lex-client", "0.0.21"),
    ...VITEST,
    also: ["vitest@4", "@atproto/lex-cbor@0.0.16", "@atproto/lex-builder@0.0.23"],
    sources: "src",
    files: { ...vitestConfigs(), ...NO_TSCONFIGS },
  },
  {
    ...packageOf("@atproto/repo", "0.9.1"),
    ...JEST,
    also: JEST_WITH_SWC,
    sources: "src",
    files: jestConfigs("@swc/jest", { moduleNameMapper: { "^(\\.\\.?\\/.+)\\.js$": ["$1.ts", "$1.js"] } }),
  },
  {
    ...packageOf("@atproto/xrpc-server", "0.10.21"),
    ...JEST,
    also: [
      ...JEST_WITH_SWC,
      "get-port@6",
      "jose@4",
      "key-encoder@2",
      "multiformats@9",
      "@atproto/crypto@0.4.5",
      "@atproto/lex@0.0.26",
      "@atproto/lex-document@0.0.21",
    ],
    sources: "src",
    files: ATPROTO_CONFIGS,
  },
  {
    ...packageOf("@atproto/crypto", "0.4.5"),
    ...JEST,
    also: [...JEST_WITH_SWC, "@atproto/common@0.5"],
    sources: "src",
    files: ATPROTO_CONFIGS,
  },
  {
    ...packageOf("@atproto/tap", "0.2.11"),
    ...VITEST,
    also: ["vitest@4", "express@4"],
    sources: "src",
    files: { ...vitestConfigs(), ...NO_TSCONFIGS },
  },
  {
    ...packageOf("@apollo/utils.keyvaluecache", "4.0.0"),
    ...JEST,
    also: [
      "jest@29",
      "ts-jest@29",
      "@types/jest@29",
      "typescript@5.9",
      "@apollo/utils.logger@3",
      "ts-expect@1",
    ],
    sources: "src",
    files: jestConfigs(["ts-jest", { diagnostics: false }], {}),
    // An entry that lives 10 ms expires before it is read on a busy machine.
    known: ["can expire keys based on ttl", "InMemoryLRUCache.test.ts (the file)"],
  },
  {
    ...packageOf("exponential-backoff", "3.1.3"),
    ...JEST,
    also: ["jest@30", "ts-jest@29", "@types/jest@30", "typescript@5.9"],
    sources: "src",
    // The tests in src/delay need a method that Jest no longer has.
    files: jestConfigs("ts-jest", { testRegex: "(?:backoff|jitter)\\.spec\\.ts$" }),
  },
  {
    ...packageOf("@atproto/common", "0.5.16"),
    ...JEST,
    also: [...JEST_WITH_SWC, "uint8arrays@3"],
    sources: "src",
    files: ATPROTO_CONFIGS,
  },
  {
    ...packageOf("@atproto/common-web", "0.4.21"),
    ...JEST,
    also: JEST_WITH_SWC,
    sources: "src",
    files: ATPROTO_CONFIGS,
  },
  {
    ...packageOf("zod", "4.6.7"),
    ...VITEST,
    control: [...VITEST.control, ...ZOD_TESTS],
    woven: [...VITEST.woven, ...ZOD_TESTS],
    also: ["vitest@4", "esbuild@0.28"],
    sources: "src/v4",
    files: vitestConfigs(ZOD_OPTIONS),
  },
  {
    ...packageOf("msw", "2.15.0"),
    ...VITEST,
    also: ["vitest@4", "jsdom@26"],
    sources: "src/core",
    files: {
      ...vitestConfigs(MSW_OPTIONS, MSW_TEST_OPTIONS),
      // The environment of two test files is not in the package.
      "node-websocket":
        'import { builtinEnvironments } from "vitest/environments";\nexport default builtinEnvironments.node;\n',
    },
  },
  {
    ...packageOf("piscina", "5.3.2"),
    also: [
      "tsx@4",
      "typescript@5.9",
      "ts-patch@3",
      "@types/node@22",
      "concat-stream@2",
      "abort-controller@3",
    ],
    sources: /^(?:src|test)\/[^/]+\.ts$/,
    // Its worker waits in Atomics.wait() until a message has raised a counter, which the handler does in its first tick. A lock
    // begins the body of the handler in a later tick, so the thread never wakes up.
    untagged: /^src\/worker\.ts$/,
    files: {
      "tsconfig.json": tsconfigOf([]),
      "tsconfig.woven.json": tsconfigOf([{ transform: "lockweave/transformer", transformProgram: true }]),
    },
    build: { control: ["tsc"], woven: ["tspc", "-p", "tsconfig.woven.json"] },
    ...nodeTest("--import tsx", PISCINA_TESTS),
  },
  {
    ...packageOf("sparql-http-client", "3.1.0"),
    ...MOCHA,
    also: [
      "mocha@11",
      "express@5",
      "express-as-promise@2",
      "is-stream@4",
      "lodash@4",
      "rdf-ext@2",
      "rdf-test@0.1",
    ],
    sources: JAVASCRIPT,
  },
  {
    ...packageOf("@rdfjs/fetch-lite", "3.3.0"),
    ...MOCHA,
    // One of its tests needs the network, and fails without locks, too.
    also: [
      "mocha@11",
      "@rdfjs/data-model@2",
      "@rdfjs/dataset@2",
      "@rdfjs/environment@1",
      "@rdfjs/formats@4",
      "@rdfjs/namespace@2",
      "@rdfjs/sink-map@2",
      "@rdfjs/to-ntriples@3",
      "express-as-promise@2",
      "stream-chunks@1",
    ],
    sources: JAVASCRIPT,
  },
  {
    ...packageOf("@automerge/automerge-repo", "2.5.6"),
    ...VITEST,
    also: [
      "vitest@4",
      "@automerge/automerge-repo-network-messagechannel@2.5.6",
      "@automerge/automerge-repo-storage-nodefs@2.5.6",
    ],
    sources: /^(?:src|test)\/.*\.ts$/,
    // It depends on ticks: without locks, it also fails in some runs if each body begins and ends 32 ticks later.
    known: ["a previously unavailable document syncs if a connected peer obtains it"],
    files: {
      ...vitestConfigs(AUTOMERGE_OPTIONS),
      ...NO_TSCONFIGS,
      // Its own configuration extends a file that is not in the package.
      "vitest.config.ts": `export default { ${AUTOMERGE_OPTIONS} };`,
    },
  },
];
