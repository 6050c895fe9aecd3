import { existsSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import test from "ava";
import { lockweave } from "../cli/command";
import { makeProject, PLUGIN, tsconfig, type Project } from "./project";
import { Watch } from "./watch";

const ORDER = `export interface Order { orderNo: string }

export class OrderService {
  /** @redisLock businessFlag=payOrder keyNmae=orderNo */
  async pay(orderNo: string): Promise<string> {
    return "paid " + orderNo;
  }

  /** @redisLock businessFlag=payOrder keyName=order.orderNoo */
  async payBean(order: Order): Promise<string> {
    return "paid " + order.orderNo;
  }
}
`;
const CORRECTED = ORDER.replace("keyNmae", "keyName").replace("orderNoo", "orderNo");

/** Calls both methods and prints each result. */
const CALLS = `
import { configure, memoryStore } from "lockweave";
import { OrderService } from "./out/order.js";
configure({ store: memoryStore(), woven: false });
const orders = new OrderService();
for (const call of [() => orders.pay("A1"), () => orders.payBean({ orderNo: "A1" })]) {
  await call().then(console.log, (error) => console.log(error.code, error.message));
}
`;

/** Returns the errors that the compiler reports for ORDER. */
async function errorsIn(project: Project, file = "src/order.ts"): Promise<string> {
  return [
    `${await project.placeOf("keyNmae", file)}: error TS901002: LW1002: There is no attribute \`keyNmae\`. Did you mean \`keyName\`?`,
    `${await project.placeOf("orderNoo ", file)}: error TS2551: Property 'orderNoo' does not exist on type 'Order'. Did you mean 'orderNo'?`,
    "",
  ].join("\n");
}

test.serial(
  "an error in a tag fails the build at its position, and the emitted function refuses to run",
  async (t) => {
    const project = await makeProject({ "src/order.ts": ORDER, "calls.js": CALLS });
    const { code, stdout } = await project.tspc();
    t.is(stdout, await errorsIn(project));
    t.is(code, 2);

    const calls = await project.run("calls.js");
    const [wrongTag = "", wrongPath = ""] = calls.stdout.split("\n");
    t.is(
      wrongTag,
      "LOCK_NOT_WOVEN order.ts:4: LW1002: There is no attribute `keyNmae`. Did you mean `keyName`? The function refuses to run unlocked.",
    );
    t.regex(wrongPath, /^LOCK_BAD_KEY /);
  },
);

for (const [option, code] of [
  ["--noEmit", 2],
  ["--noEmitOnError", 1],
] as const) {
  test.serial(`${option} reports the same errors and emits nothing`, async (t) => {
    const project = await makeProject({ "src/order.ts": ORDER });
    const compilation = await project.tspc(option);
    t.is(compilation.stdout, await errorsIn(project));
    t.is(compilation.code, code);
    t.false(existsSync(project.path("out")));
  });
}

test.serial(
  "an incremental build repeats the errors from its build info, with the same code frames",
  async (t) => {
    const project = await makeProject({ "src/order.ts": ORDER }, { incremental: true });
    const first = await project.tspc("--pretty");
    const second = await project.tspc("--pretty");
    t.is(second.stdout, first.stdout);
    t.deepEqual([first.code, second.code], [2, 2]);

    const plainText = stripVTControlCharacters(first.stdout);
    t.true(
      plainText.includes(
        [
          "4   /** @redisLock businessFlag=payOrder keyNmae=orderNo */",
          "                                         ~~~~~~~",
        ].join("\n"),
      ),
      plainText,
    );
    t.true(
      plainText.includes(
        [
          "9   /** @redisLock businessFlag=payOrder keyName=order.orderNoo */",
          "                                                       ~~~~~~~~",
        ].join("\n"),
      ),
      plainText,
    );
  },
);

test.serial("tspc -b fails each time until the error is fixed", async (t) => {
  const project = await makeProject({ "src/order.ts": ORDER, "calls.js": CALLS });
  for (const _ of ["first", "second"]) {
    const { code, stdout } = await project.tspc("-b");
    t.is(stdout, await errorsIn(project));
    t.is(code, 1);
  }
  await project.write({ "src/order.ts": CORRECTED });
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  t.is((await project.run("calls.js")).stdout, "paid A1\npaid A1\n");
});

test.serial("tspc -b fails on an error in a project or in the project it references", async (t) => {
  const composite = { composite: true, declarationMap: true, rootDir: ".", outDir: "out" };
  const project = await makeProject({
    "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "shop" }] }),
    "orders/tsconfig.json": tsconfig(composite, {}),
    "orders/order.ts": ORDER,
    "shop/tsconfig.json": tsconfig(composite, { references: [{ path: "../orders" }] }),
    "shop/shop.ts": `import type { Order } from "../orders/order.js";
/** @redisLock businessFlag=ship keyName=order.number */
export async function ship(order: Order): Promise<string> { return order.orderNo; }
`,
  });
  const both = await project.tspc("-b");
  const inShop = `${await project.placeOf("number */", "shop/shop.ts")}: error TS2339: Property 'number' does not exist on type 'Order'.\n`;
  t.is(both.stdout, `${await errorsIn(project, "orders/order.ts")}${inShop}`);
  t.not(both.code, 0);

  await project.write({ "orders/order.ts": CORRECTED });
  const one = await project.tspc("-b");
  t.is(one.stdout, inShop);
  t.not(one.code, 0);
});

test.serial(
  "--watch reports an error, weaves once it is fixed, and reports it again when it returns",
  async (t) => {
    const project = await makeProject({ "src/order.ts": ORDER, "calls.js": CALLS });
    const watch = new Watch(project);
    try {
      t.true((await watch.build()).includes(await errorsIn(project)));

      await project.write({ "src/order.ts": CORRECTED });
      t.regex(await watch.build(), /Found 0 errors/);
      t.is((await project.run("calls.js")).stdout, "paid A1\npaid A1\n");
      t.regex(await project.read("out/order.js"), /lockweave\.acquire/);

      await project.write({ "src/order.ts": `// One line more.\n${ORDER}` });
      t.true((await watch.build()).includes(await errorsIn(project)));
      t.regex((await project.run("calls.js")).stdout, /^LOCK_NOT_WOVEN order\.ts:5: .*\nLOCK_BAD_KEY /);
    } finally {
      await watch.stop();
    }
  },
);

test.serial("invalid plugin options are errors, and the emitted code still contains the locks", async (t) => {
  const plugin = { ...PLUGIN, defaults: { lockTime: "soon", retryTime: 3, onFailure: "OrderBusy" } };
  const project = await makeProject(
    { "src/order.ts": CORRECTED, "calls.js": CALLS },
    { plugins: [plugin], incremental: true },
  );
  const expected = [
    "error TS901401: LW1401: In the plugin's `defaults`, `onFailure` can be `throw` or `skip`.",
    "error TS901401: LW1401: In the plugin's `defaults`: Expected `lockTime` to be a duration such as `500ms`, `20s`, or `2m` (a bare number is in s), at least 100 ms and at most 24 hours, got `soon`.",
    "error TS901401: LW1401: The plugin's `defaults` have no option `retryTime`. Did you mean `retryTimes`?",
    "",
  ].join("\n");
  for (const args of [[], [], ["-b"], ["-b"], ["--noEmit"]]) {
    const { code, stdout } = await project.tspc(...args);
    t.is(stdout, expected, args.join(" "));
    t.not(code, 0);
  }
  t.regex(await project.read("out/order.js"), /lockweave\.acquire/);
});

test.serial("an unknown plugin option is an error, with and without tags", async (t) => {
  const project = await makeProject(
    { "src/order.ts": CORRECTED },
    { plugins: [{ ...PLUGIN, default: { lockTime: "20s" } }] },
  );
  const expected =
    "error TS901401: LW1401: The plugin lockweave/transformer has no option `default`. Did you mean `defaults`?\n";
  t.like(await project.tspc("--noEmit"), { code: 2, stdout: expected });
  await project.write({ "src/order.ts": "export {};" });
  t.like(await project.tspc("--noEmit"), { code: 2, stdout: expected });
});

test.serial("a tag attribute among the plugin's options is an error that points to `defaults`", async (t) => {
  const project = await makeProject(
    { "src/order.ts": CORRECTED },
    { plugins: [{ ...PLUGIN, lockTime: "20s" }] },
  );
  t.like(await project.tspc("--noEmit"), {
    code: 2,
    stdout:
      'error TS901401: LW1401: The plugin lockweave/transformer has no option `lockTime`. Fix: to set it for all tags of a project, write it in `defaults`: { "defaults": { "lockTime": ... } }.\n',
  });
});

for (const transformProgram of [undefined, false]) {
  test.serial(
    `with transformProgram ${transformProgram} the compiler prints the setting to write and emits nothing`,
    async (t) => {
      const project = await makeProject(
        { "src/order.ts": CORRECTED },
        { plugins: [{ transform: PLUGIN.transform, transformProgram }] },
      );
      for (const args of [[], ["--noEmit"], ["--incremental"]]) {
        t.deepEqual(await project.tspc(...args), {
          code: 1,
          stdout:
            'error TS901401: LW1401: Lockweave transforms the whole program. Fix: in tsconfig.json, write { "transform": "lockweave/transformer", "transformProgram": true }.\n',
          stderr: "",
        });
      }
      t.false(existsSync(project.path("out")));
    },
  );
}

test.serial("an implausible number for its unit is a warning, and the build succeeds", async (t) => {
  const project = await makeProject({
    "src/a.ts": `/** @redisLock businessFlag=f lockTime=30000 */ export async function pay(): Promise<void> {}\n`,
  });
  const { code, stdout, stderr } = await project.tspc();
  t.deepEqual([code, stdout], [0, ""]);
  t.regex(stderr, /^src\/a\.ts\(1,40\): warning TS901111: LW1111: `lockTime=30000` is 8\.3 hours\. /);
});

test.serial("a configure() that is passed as a value is a warning, which the check repeats", async (t) => {
  const project = await makeProject({
    "src/a.ts": `import { configure, memoryStore } from "lockweave";
const boot = (start: typeof configure): void => start({ store: memoryStore() });
boot(configure);
`,
    "src/pay.ts": `/** @redisLock businessFlag=f */ export async function pay(): Promise<void> {}\n`,
  });
  const { code, stdout, stderr } = await project.tspc();
  t.deepEqual([code, stdout], [0, ""]);
  t.regex(stderr, /^src\/a\.ts\(3,6\): warning TS901405: LW1405: This passes `configure` as a value\. /);
  t.regex((await project.run("out/a.js")).stderr, /LockNotWovenError: /);
  t.regex((await lockweave(project, "check")).stderr, /^src\/a\.ts:3:6: warning: LW1405: /m);
});
