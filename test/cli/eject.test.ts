import { rm } from "node:fs/promises";
import test from "ava";
import { makeProject, tsconfig, type Files, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { linkTypeScript7 } from "./tools";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;
const outsideMatrix = isMatrix ? test.skip : test.serial;

const SERVICE = `import { work } from "./work.js";

export interface Order { id: string; paid: boolean }

export class OrderService {
  readonly seen: string[] = [];

  /**
   * Pays.
   *
   * @redisLock businessFlag=payOrder keyName=order.id
   *            lockTime=20s
   */
  async pay(order: Order): Promise<string> {
    if (order.paid) return "paid";

    // Slow.
    await work();
    return \`a
  text\`;
  }

  /** @redisLock businessFlag=refund keyName=order.id reentrant=true */
  refund(order: Order): Promise<string> { return this.pay(order); }

  /** @redisLock businessFlag=close when="!order.paid" */
  close = async (order: Order): Promise<boolean> => order.paid;
}
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { OrderService } from "./service.js";
const { log } = (globalThis as unknown as { console: { log(line: unknown): void } }).console;
configure({ store: memoryStore(), logger: { debug: (line: string) => log(line.replace(/ [0-9a-f]{8} (\\w+).*/, " $1")), warn: log } });
const service = new OrderService();
log(await service.refund({ id: "1", paid: false }));
log(await service.close({ id: "2", paid: true }));
`;
const FILES: Files = {
  "src/service.ts": SERVICE,
  "src/main.ts": MAIN,
  "src/work.ts": "export const work = async (): Promise<void> => {};\n",
};

const EJECTED = `import * as lockweave from "lockweave/runtime";
import { work } from "./work.js";

export interface Order { id: string; paid: boolean }

export class OrderService {
  readonly seen: string[] = [];

  /**
   * Pays.
   *
   * Locked by: businessFlag=payOrder keyName=order.id
   *            lockTime=20s
   */
  async pay(order: Order): Promise<string> {
    const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder", lockTime: "20s" }, order.id);
    while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
    try {
      lockweave.assertHeld(lock);
      if (order.paid) return "paid";

      // Slow.
      await work();
      return \`a
  text\`;
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  }

  /** Locked by: businessFlag=refund keyName=order.id reentrant=true */
  async refund(order: Order): Promise<string> {
    const lock = lockweave.open({ site: "OrderService.refund", businessFlag: "refund", reentrant: true }, order.id);
    while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
    try {
      return await lockweave.runReentrant(lock, (): Promise<string> => {
        return this.pay(order);
      });
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  }

  /** Locked by: businessFlag=close when="!order.paid" */
  close = async (order: Order): Promise<boolean> => {
    const lock = lockweave.when(!order.paid) ? lockweave.open({ site: "OrderService.close", businessFlag: "close" }) : lockweave.unlocked();
    while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
    try {
      lockweave.assertHeld(lock);
      return await order.paid;
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  };
}
`;

async function output(project: Project): Promise<string> {
  const { code, stdout, stderr } = await project.run("out/main.js");
  return code === 0 ? stdout : stderr;
}

outsideMatrix(
  "eject writes formatted lock code that needs no transformer, and keeps the attributes in comments",
  async (t) => {
    const project = await makeProject(FILES);
    t.is((await project.tspc()).code, 0);
    const before = await output(project);
    const { code, stdout, stderr } = await lockweave(project, "eject", "--yes");
    t.deepEqual([code, stderr], [0, ""]);
    t.true(
      stdout.startsWith(
        "src/main.ts\nsrc/service.ts\nWrote the locks of all 3 tags. They need `lockweave` at run time, but no transformer.\n",
      ),
      stdout,
    );
    t.is(await project.read("src/service.ts"), EJECTED);
    await project.write({ "tsconfig.json": tsconfig({ plugins: [] }) });
    await rm(project.path("out"), { recursive: true });
    t.deepEqual(await project.tsc(), { code: 0, stdout: "", stderr: "" });
    t.is(await output(project), before);
    t.true(before.includes("LOCK_payOrder_1 (OrderService.pay)"), before);
  },
);

outsideMatrix("a second eject finds no tags, and a later weave keeps the ejected locks", async (t) => {
  const project = await makeProject(FILES);
  t.is((await lockweave(project, "eject", "--yes")).code, 0);
  const { code, stderr } = await lockweave(project, "eject", "--yes");
  t.is(code, 2);
  t.regex(stderr, /This project has no tags, so there is nothing to eject\./);
  t.deepEqual(await project.tspc(), { code: 0, stdout: "", stderr: "" });
  t.true((await output(project)).includes("LOCK_payOrder_1"));
});

outsideMatrix("eject changes nothing without --yes, and exits with 3", async (t) => {
  const project = await makeProject(FILES);
  const { code, stdout } = await lockweave(project, "eject");
  t.is(code, 3);
  t.true(
    stdout.endsWith(
      "Nothing was changed. To apply the changes without confirmation, run `npx lockweave eject --yes`.\n",
    ),
  );
  t.is(await project.read("src/service.ts"), SERVICE);
});

inMatrix("eject changes nothing if a tag is wrong or the result would not compile", async (t) => {
  const wrong = await makeProject({
    ...FILES,
    "src/service.ts": SERVICE.replace("keyName=order.id", "keyName=nr"),
  });
  const refused = await lockweave(wrong, "eject", "--yes");
  t.is(refused.code, 1);
  t.regex(
    refused.stderr,
    /^src\/service\.ts:\d+:\d+: LW1202: .*\nLockweave cannot generate the code of a wrong tag, so nothing was changed\.\n$/,
  );
  // Only a type checker notices a missing field.
  const text = SERVICE.replace("keyName=order.id", "keyName=order.nr");
  const untyped = await makeProject({ ...FILES, "src/service.ts": text });
  const { code, stderr } = await lockweave(untyped, "eject", "--yes");
  t.is(code, 1);
  t.regex(
    stderr,
    /^src\/service\.ts:\d+:\d+: TS2339: .*\nThe result would not compile, so nothing was changed\.\n$/,
  );
  t.is(await untyped.read("src/service.ts"), text);
});

inMatrix("eject ignores type errors that were there before, and keeps tabs and CRLF", async (t) => {
  const windows =
    "export class A {\r\n\t/** @redisLock businessFlag=a */\r\n\tasync a(): Promise<number> {\r\n\t\treturn 1;\r\n\t}\r\n}\r\n";
  const project = await makeProject({ "src/a.ts": windows, "src/b.ts": "export const b: string = 1;\n" });
  t.is((await lockweave(project, "eject", "--yes")).code, 0);
  const ejected = await project.read("src/a.ts");
  t.is(ejected.replaceAll("\r\n", "").includes("\n"), false);
  t.true(
    ejected.includes("\r\n\t\ttry {\r\n\t\t\tlockweave.assertHeld(lock);\r\n\t\t\treturn 1;\r\n\t\t} catch"),
    ejected,
  );
});

inMatrix("eject reports which TypeScript it needs if the project has TypeScript 7", async (t) => {
  const project = await makeProject(FILES);
  await linkTypeScript7(project);
  const { code, stderr } = await lockweave(project, "eject", "--yes");
  t.is(code, 2);
  t.regex(stderr, /`diff` and `eject` need TypeScript 5\.9 or 6/);
});

outsideMatrix("diff shows a function as written and as woven, side by side", async (t) => {
  const project = await makeProject(FILES);
  const { code, stdout, stderr } = await lockweave(project, "diff", "close");
  t.deepEqual([code, stderr], [0, ""]);
  t.is(
    stdout,
    `src/service.ts:26:7: OrderService.close
/** @redisLock businessFlag=close when="!order.paid" */        /** @redisLock businessFlag=close when="!order.paid" */
close = async (order: Order): Promise<boolean> => order.paid <
                                                             > close = async (order: Order): Promise<boolean> => {
                                                             >   const lock = lockweave.when(!order.paid) ? lockweave.open({ site: "OrderService.close", busines
                                                             > sFlag: "close" }) : lockweave.unlocked();
                                                             >   while (!(await lockweave.acquire(lock))) void (await lockweave.retryCheck(lock));
                                                             >   try {
                                                             >     lockweave.assertHeld(lock);
                                                             >     return await order.paid;
                                                             >   } catch (error) {
                                                             >     throw lockweave.fail(lock, error);
                                                             >   } finally {
                                                             >     await lockweave.release(lock);
                                                             >   }
                                                             > }
`,
  );
});

outsideMatrix("diff reports invalid tags, and exits with 1", async (t) => {
  const project = await makeProject({
    ...FILES,
    "src/service.ts": SERVICE.replace("keyName=order.id", "keyName=nr"),
  });
  const wrong = /^src\/service\.ts:\d+:\d+: LW1202: The function has no parameter `nr`\./;
  const all = await lockweave(project, "diff");
  t.is(all.code, 1);
  t.regex(all.stdout, /OrderService\.close/);
  t.regex(all.stderr, wrong);
  const missing = await lockweave(project, "diff", "OrderService.none");
  t.is(missing.code, 2);
  t.regex(missing.stderr, wrong);
  const alone = await makeProject({
    "src/a.ts":
      "/** @redisLock businessFlag=a keyName=nr */\nexport async function a(id: string) { return id; }\n",
  });
  t.like(await lockweave(alone, "diff"), { code: 1, stdout: "" });
});

inMatrix("diff without a name shows all tagged functions, and a wrong name gets a suggestion", async (t) => {
  const project = await makeProject(FILES);
  const { stdout } = await lockweave(project, "diff");
  t.deepEqual(
    stdout.split("\n").filter((line) => line.startsWith("src/")),
    [
      "src/service.ts:11:6: OrderService.pay",
      "src/service.ts:23:7: OrderService.refund",
      "src/service.ts:26:7: OrderService.close",
    ],
  );
  const { code, stderr } = await lockweave(project, "diff", "OrderService.clos");
  t.is(code, 2);
  t.regex(
    stderr,
    /No function with a valid tag has the name `OrderService\.clos`\. Did you mean `OrderService\.close`\?/,
  );
});
