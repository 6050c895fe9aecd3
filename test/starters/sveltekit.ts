import { SERVICE } from "./service";
import type { Starter } from "./starters";

const ADD_ONS = 'eslint vitest="usages:unit" sveltekit-adapter="adapter:node"';

/** `init` writes `src/hooks.server.ts`, which calls `configure()`. */
export const SVELTEKIT: Starter = {
  name: "sveltekit",
  create: `npx sv@0.17.1 create app --template minimal --types ts --add ${ADD_ONS} --no-install`,
  files: {
    "src/lib/server/pay.ts": SERVICE,
    "src/lib/server/pay.spec.ts": `import { afterAll, expect, test } from "vitest";
import { assertWoven } from "lockweave";
import { testLocks } from "lockweave/testing";
import { pay } from "./pay";

const locks = testLocks();
afterAll(() => locks.close());

test("pays under a lock", async () => {
  assertWoven(pay);
  expect(await pay("A1", "data:,")).toBe("A1 is paid");
  expect(locks.acquired).toEqual(["LOCK_starter_A1"]);
});
`,
    "src/routes/pay/+server.ts": `import { pay } from "$lib/server/pay";
import type { RequestHandler } from "./$types";

export const GET: RequestHandler = async ({ url }) => new Response(await pay("A1", url.searchParams.get("gate") ?? ""));
`,
  },
  tagged: "src/lib/server/pay.ts",
  build: "npm run build",
  start: { command: "node build", route: "/pay?gate={gate}" },
  test: "npm test",
  lint: "npm run lint && npm run check",
  check: '--output "build/**/*.js"',
};
