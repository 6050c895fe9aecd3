import { server, SERVICE } from "./service";
import type { Starter } from "./starters";

export const BUN: Starter = {
  name: "bun",
  create: "mkdir app && cd app && bun init -y",
  tools: ["bun"],
  install: "bun add {lockweave} ioredis@6.0.0",
  files: {
    "pay.ts": SERVICE,
    "server.ts": server("./pay"),
    "pay.test.ts": `import { expect, test } from "bun:test";
import { assertWoven, testLocks } from "lockweave/testing";
import { pay } from "./pay";

const locks = testLocks();

test("pays under a lock", async () => {
  assertWoven(pay);
  expect(await pay("A1", "data:,")).toBe("A1 is paid");
  expect(locks.acquired).toEqual(["LOCK_starter_A1"]);
});
`,
  },
  tagged: "pay.ts",
  start: { command: "bun server.ts", route: "/pay?gate={gate}" },
  test: "bun test",
};

export const DENO: Starter = {
  name: "deno",
  create: "deno init app",
  tools: ["deno"],
  install: `echo '{ "type": "module" }' > package.json && npm install {lockweave} ioredis@6.0.0`,
  files: {
    "pay.ts": SERVICE,
    "server.ts": server("./pay.ts"),
    "pay_test.ts": `import { assertWoven, testLocks } from "lockweave/testing";
import { pay } from "./pay.ts";

testLocks();

Deno.test("pays under a lock", async () => {
  assertWoven(pay);
  if ((await pay("A1", "data:,")) !== "A1 is paid") throw new Error("It is not paid.");
});
`,
  },
  // The starter's own test needs a package of JSR.
  edit: {
    "deno.json": (text) =>
      text.replace(
        '"tasks": {',
        '"tasks": {\n    "start": "deno run --allow-all server.ts",\n    "test": "deno test --allow-all --no-check pay_test.ts",',
      ),
  },
  tagged: "pay.ts",
  start: { command: "deno task start", route: "/pay?gate={gate}" },
  test: "deno task test",
};
