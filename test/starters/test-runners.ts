import { json, SERVICE } from "./service";
import type { Files, Starter } from "./starters";

/** A unit test. With a gate in the environment variable, it locks on Redis. */
function unitTest(from: string, gate = "GATE"): string {
  return `import { strict as assert } from "node:assert";
import { assertWoven, configure, shutdown } from "lockweave";
import { testLocks } from "lockweave/testing";
import { pay } from "${from}";

const { ${gate}: gate, REDIS_URL } = process.env;

it("pays under a lock", async () => {
  assertWoven(pay);
  if (gate === undefined) {
    const locks = testLocks();
    assert.equal(await pay("A1", "data:,"), "A1 is paid");
    assert.deepEqual(locks.acquired, ["LOCK_starter_A1"]);
    await locks.close();
  } else {
    configure({ redis: REDIS_URL ?? "" });
    console.log(await pay("A1", gate));
    await shutdown();
  }
});
`;
}

const MOCHA_FILES: Files = {
  "src/pay.ts": SERVICE,
  "test/pay.test.ts": unitTest("../src/pay"),
};

export const TEST_RUNNERS: readonly Starter[] = [
  {
    name: "mocha-ts-node",
    byHand: "Mocha has no starter",
    files: {
      ...MOCHA_FILES,
      "package.json": json({
        name: "app",
        type: "commonjs",
        scripts: { build: "tsc", test: "mocha" },
        devDependencies: {
          "@types/mocha": "^10.0.10",
          "@types/node": "^24",
          mocha: "12.0.3",
          "ts-node": "10.9.2",
          typescript: "^6.0.3",
        },
      }),
      ".mocharc.json": json({ require: "ts-node/register", spec: "test/**/*.test.ts", timeout: 0 }),
      "tsconfig.json": json({
        compilerOptions: {
          target: "es2022",
          module: "nodenext",
          strict: true,
          skipLibCheck: true,
          types: ["node", "mocha"],
          rootDir: "src",
          outDir: "dist",
        },
        include: ["src"],
        "ts-node": { files: true, compilerOptions: { rootDir: "." } },
      }),
    },
    tagged: "src/pay.ts",
    build: "npm run build",
    start: { command: "npm test" },
    test: "npm test",
    check: "",
    reports: "npm test",
  },
  {
    name: "mocha-tsx",
    byHand: "Mocha has no starter",
    files: {
      ...MOCHA_FILES,
      "test/pay.test.ts": unitTest("../src/pay.js"),
      "package.json": json({
        name: "app",
        type: "module",
        scripts: { test: "mocha" },
        devDependencies: {
          "@types/mocha": "^10.0.10",
          "@types/node": "^24",
          mocha: "12.0.3",
          tsx: "^4.23.15",
        },
      }),
      ".mocharc.json": json({ "node-option": ["import=tsx"], spec: ["test/**/*.test.ts"], timeout: 0 }),
    },
    tagged: "src/pay.ts",
    start: { command: "npm test" },
    test: "npm test",
    reports: "npm test",
  },
  {
    name: "vitest-projects",
    byHand: "Vitest has no starter",
    files: {
      "package.json": json({
        name: "app",
        type: "module",
        scripts: { test: "vitest run" },
        devDependencies: { "@types/node": "^24", typescript: "^6.0.3", vitest: "5.1.1" },
      }),
      "tsconfig.json": json({
        compilerOptions: {
          target: "es2022",
          module: "esnext",
          moduleResolution: "bundler",
          strict: true,
          skipLibCheck: true,
          types: ["node", "vitest/globals"],
          noEmit: true,
        },
      }),
      "vitest.config.ts": `import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: { name: "unit", globals: true, include: ["src/**/*.test.ts"], testTimeout: 0 },
      },
      {
        extends: true,
        test: { name: "more", globals: true, include: ["test/**/*.test.ts"] },
      },
      "packages/*",
    ],
  },
});
`,
      "packages/one/package.json": json({ name: "one", type: "module" }),
      "packages/one/vitest.config.ts": `import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { globals: true, testTimeout: 0 },
});
`,
      "src/pay.ts": SERVICE,
      "src/pay.test.ts": unitTest("./pay"),
      "test/pay.test.ts": unitTest("../src/pay", "NONE"),
      "packages/one/pay.test.ts": unitTest("../../src/pay", "NONE"),
    },
    tagged: "src/pay.ts",
    start: { command: "npm test" },
    test: "npm test",
    lint: "npx tsc",
    reports: "npm test",
  },
];
